import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import type { Context, Hono } from "hono";
import { refuseOthers } from "./serving.ts";

export interface PageFile {
  /** Its media type. */
  readonly type: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** The files of the chat page and the dashboard, by the path of their URL. */
export type PageFiles = ReadonlyMap<string, PageFile>;

/** Where files are whose names change with their contents. */
const assets = "/assets/";

/** Nothing from elsewhere, and nothing in the page's own text, is run, drawn or asked. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** `/`, `/dashboard` and what they are made of. They need no key: they show what their users may see. */
export function addPage(app: Hono, page: PageFiles): void {
  const files = new Map([...page].map(([path, file]) => [path, readerOf(path, file)]));
  for (const route of new Set([...page.keys()].map(routeOf))) {
    app.get(route, (context) => files.get(context.req.path)?.(context) ?? context.notFound());
    refuseOthers(app, route, "GET");
  }
}

/** Metrics count by routes, which must not be others with each build. */
const routeOf = (path: string): string => (path.startsWith(assets) ? `${assets}*` : path);

function readerOf(path: string, file: PageFile): (context: Context) => Response {
  const headers = headersOf(path, file);
  return ({ req }) => {
    const isKnown = matches(req.header("If-None-Match"), headers["ETag"]!);
    if (isKnown) return new Response(null, { status: 304, headers });
    return new Response(file.bytes, { headers: { ...headers, "Content-Type": file.type } });
  };
}

function headersOf(path: string, { bytes }: PageFile): Record<string, string> {
  const lasting = path.startsWith(assets);
  return {
    "Content-Security-Policy": policy,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": lasting ? "public, max-age=31536000, immutable" : "no-cache",
    ETag: `"${bytesToHex(sha256(bytes))}"`,
  };
}

/** @param known a list of tags, or `*`; a proxy that packs replies makes tags weak */
function matches(known: string | undefined, tag: string): boolean {
  const tags = (known ?? "").split(",").map((each) => each.trim().replace(/^W\//, ""));
  return tags.includes(tag) || tags.includes("*");
}
