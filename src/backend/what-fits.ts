import { pageRows } from "../limits.ts";
import type { BackendOptions } from "./backend.ts";

/** Whether a backend of such sizes has room. */
export type Fits = (options: BackendOptions) => Promise<boolean>;

/** What to tell of sizes that don't fit: how many tokens would, with as many slots or with one. */
export async function whatFits(options: BackendOptions, fits: Fits): Promise<string> {
  const all = await tokensThatFit(options, fits);
  const one = options.slots > 1 ? await tokensThatFit({ ...options, slots: 1 }, fits) : 0;
  const choices = [
    ...(all > 0 ? [`keys and values of ${all} tokens`] : []),
    ...(one > all ? [`one slot with those of ${one} tokens`] : []),
  ];
  if (choices.length > 0) return `What would fit: ${choices.join(", or ")}.`;
  return "No context is small enough: take a smaller model, or one of fewer bits.";
}

/** The most tokens, up to those asked for, that there are pages for; 0 where not even one fits. */
async function tokensThatFit(options: BackendOptions, fits: Fits): Promise<number> {
  const pages = await mostThatFits(options.pages, (count) => fits({ ...options, pages: count }));
  return pages * pageRows;
}

/** The largest count up to `most` that fits, by halves: what fits with more, fits with fewer. */
export async function mostThatFits(
  most: number,
  fits: (count: number) => Promise<boolean>,
): Promise<number> {
  if (await fits(most)) return most;
  let known = 0;
  let over = most;
  while (over - known > 1) {
    const middle = Math.floor((known + over) / 2);
    if (await fits(middle)) known = middle;
    else over = middle;
  }
  return known;
}
