/** @module The HTTP server, as a fetch handler. */
export { type AppOptions, createApp } from "./serve/app.ts";
