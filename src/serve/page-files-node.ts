import { readdir, readFile } from "node:fs/promises";
import { extname } from "node:path";
import type { PageFile, PageFiles } from "./page.ts";

/** From src/ and from dist/ alike, the package's root is two folders up. */
const folder = new URL("../../dist/page/", import.meta.url);

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** The built pages; null where they are not built. */
export async function readPageFiles(): Promise<PageFiles | null> {
  const names = await readdir(folder, { recursive: true }).catch(() => []);
  const files: [string, PageFile][] = [];
  for (const name of names.map((each) => each.replaceAll("\\", "/")).sort()) {
    const type = types[extname(name)];
    // A folder, or nothing that pages are made of.
    if (type === undefined) continue;
    files.push([pathOf(name), { type, bytes: await readFile(new URL(name, folder)) }]);
  }
  return files.length > 0 ? new Map(files) : null;
}

/** The URL of a page is its name without the ending, and that of the index is the root. */
function pathOf(name: string): string {
  return `/${name}`.replace(/\.html$/, "").replace(/\/index$/, "/");
}
