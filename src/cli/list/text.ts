import { bytesText } from "../format.ts";
import type { CacheReport } from "./describe.ts";

type Row = readonly [name: string, kind: string, size: string];

/** What is in a cache, as a table. */
export function cacheText({ cache, models, begun }: CacheReport): string {
  const rows: Row[] = [
    ...models.map(({ name, kind, bytes }): Row => [name, kind, bytesText(bytes)]),
    ...begun.map(({ repo, bytes }): Row => [repo, "begun", bytesText(bytes)]),
  ];
  if (rows.length === 0) return `There is no model in ${cache}.`;
  const widths = [0, 1, 2].map((column) => Math.max(...rows.map((row) => row[column]!.length)));
  const [names = 0, kinds = 0, sizes = 0] = widths;
  const lines = rows.map(
    ([name, kind, size]) => `${name.padEnd(names)}  ${kind.padEnd(kinds)}  ${size.padStart(sizes)}`,
  );
  return [`in ${cache}:`, ...lines].join("\n");
}
