import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { readPageFiles } from "./page-files-node.ts";

const gzippedBytesMax = 120_000;

const files = await readPageFiles();
if (files === null) throw new Error("The pages are not built: run `npm run build`.");

test("the pages are all there, under the URLs that name them", () => {
  const paths = [...files.keys()];
  expect(paths).toEqual(expect.arrayContaining(["/", "/dashboard"]));
  for (const path of ["/", "/dashboard"]) {
    expect(files.get(path)!.type).toBe("text/html; charset=utf-8");
    const html = Buffer.from(files.get(path)!.bytes).toString();
    const named = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, url]) => url!);
    expect(named.length).toBeGreaterThan(2);
    for (const url of named) expect(paths).toContain(new URL(url, `http://x${path}`).pathname);
    // The policy forbids what stands in the page itself.
    expect(html).not.toMatch(/<style|<script(?![^>]* src=)|\son\w+=|\sstyle=/);
  }
  const others = paths.filter((path) => !["/", "/dashboard"].includes(path));
  for (const path of others) expect(path).toMatch(/^\/assets\/[\w-]+-[\w-]{8}\.(js|css|svg)$/);
});

test("all of it together is small", () => {
  const sizes = [...files.values()].map(({ bytes }) => gzipSync(bytes).length);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(gzippedBytesMax);
});
