import type { ConvertSummary } from "../../weights/convert-plan.ts";
import { bytesText, countText } from "../format.ts";

/** What a conversion writes, as aligned lines. */
export function summaryText({ kinds, kept, parameters, bytes, shards }: ConvertSummary): string {
  const total = {
    kind: "all",
    modules: sum(kinds.map(({ modules }) => modules)),
    parameters,
    bytes,
  };
  const rows = [
    ["", "modules", "parameters", "bits each", "size"],
    ...[...kinds, total].map((kind) => [
      kind.kind,
      String(kind.modules),
      countText(kind.parameters),
      ((8 * kind.bytes) / kind.parameters).toFixed(2),
      bytesText(kind.bytes),
    ]),
  ];
  const lines = rows.map((row) => alignedRow(row, rows));
  lines.push(`${shards === 1 ? "one file" : `${shards} files`} of weights, ${bytes} bytes`);
  for (const [reason, own] of keptByReason(kept)) lines.push(`kept as stored, ${reason}: ${own}`);
  return `${lines.join("\n")}\n`;
}

/** The first column to the left, numbers to the right. */
function alignedRow(row: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = row.map((cell, column) => {
    const width = Math.max(...rows.map((other) => other[column]?.length ?? 0));
    return column === 0 ? cell.padEnd(width) : cell.padStart(width);
  });
  return cells.join("  ");
}

/** Names of kept modules, a few of many. */
function keptByReason(kept: ConvertSummary["kept"]): ReadonlyMap<string, string> {
  const names = new Map<string, string[]>();
  for (const { module, cols, fate } of kept) {
    const reason = fate === "asked" ? "as asked" : `groups don't divide ${cols} columns`;
    names.set(reason, [...(names.get(reason) ?? []), module]);
  }
  return new Map([...names].map(([reason, own]) => [reason, shortList(own)]));
}

const shownNames = 3;

function shortList(names: readonly string[]): string {
  const rest = names.length - shownNames;
  return names.slice(0, shownNames).join(", ") + (rest > 0 ? ` and ${rest} more` : "");
}

const sum = (values: readonly number[]): number =>
  values.reduce((total, value) => total + value, 0);
