import { windowRowsMax } from "../../limits.ts";
import { isTree, type Plan, pathOf } from "../../model/plan.ts";

/** Words of a packed path. */
export const pathWords = 2;
const rowsAWord = windowRowsMax / pathWords;

/** A path's rows, four bits each, as `kernels/pass.wgsl` reads them. */
export function packPath(path: readonly number[]): number[] {
  const words = new Array<number>(pathWords).fill(0);
  path.forEach((row, depth) => {
    const word = Math.floor(depth / rowsAWord);
    words[word] = (words[word]! | (row << (4 * (depth % rowsAWord)))) >>> 0;
  });
  return words;
}

/** Rows that `kernels/gdn.wgsl` goes over in one go: a chain's, or the path to a leaf of a tree. */
export interface Scan {
  /** Index of its segment in the plan. */
  readonly segment: number;
  readonly rows: number;
  /** Its first rows that another scan gives: where paths begin alike, the first leaf's has the rows. */
  readonly known: number;
  /** The leaf among the segment's rows; null for a chain. */
  readonly leaf: number | null;
}

/** The scans of a pass with trees; none where there is no tree, and each segment is one. */
export function scansOf({ segments }: Plan): Scan[] {
  if (!segments.some(isTree)) return [];
  return segments.flatMap((segment, index): Scan[] => {
    const { rows, parents } = segment;
    if (!parents || !isTree(segment)) return [{ segment: index, rows, known: 0, leaf: null }];
    const given = new Set<number>();
    const leaves = parents.flatMap((_, row) => (parents.includes(row) ? [] : [row]));
    return leaves.map((leaf) => {
      const path = pathOf(segment, leaf);
      const known = path.filter((row) => given.has(row)).length;
      for (const row of path) given.add(row);
      return { segment: index, rows: path.length, known, leaf };
    });
  });
}
