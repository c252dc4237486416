import { InvalidArgumentError } from "commander";

/** The part of a gate's cells that one process runs, so that others can run the rest beside it. */
export interface Shard {
  /** From 0, below `count`. */
  readonly index: number;
  readonly count: number;
}

export const wholeGate: Shard = { index: 0, count: 1 };

/** Cells in a row that one shard runs: neighbours often share a serial reply. */
const blockCells = 8;

/** Whether the shard runs a cell, by the cell's place in the gate. */
export const isOfShard = (cell: number, { index, count }: Shard): boolean =>
  Math.floor(cell / blockCells) % count === index;

/** `2/8`: the second of eight parts. */
export function shardValue(text: string): Shard {
  const [, index, count] = /^([1-9]\d{0,3})\/([1-9]\d{0,3})$/.exec(text) ?? [];
  if (index === undefined || Number(index) > Number(count)) {
    throw new InvalidArgumentError("It must be such as 2/8: the second of eight parts.");
  }
  return { index: Number(index) - 1, count: Number(count) };
}
