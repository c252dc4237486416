/** @module The HTTP server, as a fetch handler. */
export { type AppOptions, createApp } from "./serve/app.ts";
export { ApiKeys, type NamedKey } from "./serve/keys.ts";
export { jsonLine, type RequestEntry, textLine } from "./serve/request-log.ts";
