/** Files that are not whole yet, among a model's blobs: `NAME.OWNER.incomplete`. */
import { rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { systemClock } from "../clock.ts";
import { namesIn, orAbsent } from "./file-system-node.ts";
import { hasEnded, OwnerTag, ownerProcess } from "./owner-node.ts";

/** Nobody leaves a part alone for so long while writing it. */
const idleSecondsMax = 3600;

/** The name of what will be no blob. */
export const refPart = "ref";

/** What a file is called until it is whole. Nobody else goes on with it until this is disposed of. */
export class PartName implements Disposable {
  readonly path: string;
  readonly #tag = new OwnerTag();

  constructor(blobs: string, name: string) {
    this.path = join(blobs, `${name}.${this.#tag.text}.incomplete`);
  }

  [Symbol.dispose](): void {
    this.#tag[Symbol.dispose]();
  }
}

/** A part that nobody writes to any more. */
interface Leftover {
  readonly path: string;
  /** What it was to be called. */
  readonly name: string;
  readonly bytes: number;
}

/** Those of other programs are left to them. */
async function leftovers(blobs: string): Promise<Leftover[]> {
  const found: Leftover[] = [];
  for (const file of await namesIn(blobs)) {
    const [name = "", tag = "", end, ...more] = file.split(".");
    if (end !== "incomplete" || more.length > 0 || ownerProcess(tag) === null) continue;
    const path = join(blobs, file);
    const stats = await stat(path).catch(orAbsent(null));
    if (!stats) continue;
    const idleSeconds = systemClock.unixSeconds() - stats.mtimeMs / 1000;
    const isLeft = hasEnded(tag) || idleSeconds > idleSecondsMax;
    if (isLeft) found.push({ path, name, bytes: stats.size });
  }
  return found;
}

/** How much of each blob is in parts that can be gone on with, by name. */
export async function partBytes(blobs: string): Promise<ReadonlyMap<string, number>> {
  const parts = new Map<string, number>();
  for (const { name, bytes } of await leftovers(blobs)) {
    parts.set(name, Math.max(bytes, parts.get(name) ?? 0));
  }
  return parts;
}

/** A part to go on with: the largest that was left, under a name of our own. Where none was, it isn't there. */
export async function claimPart(blobs: string, name: string): Promise<PartName> {
  const part = new PartName(blobs, name);
  const [largest] = (await leftovers(blobs))
    .filter((left) => left.name === name)
    .sort((a, b) => b.bytes - a.bytes);
  // Of several who want it, one gets it.
  if (largest) await rename(largest.path, part.path).catch(orAbsent(undefined));
  return part;
}

/** Removes what was left and is of no use: parts of blobs that are whole, and of refs. */
export async function sweepParts(blobs: string): Promise<void> {
  const whole = new Set(await namesIn(blobs)).add(refPart);
  for (const { path, name } of await leftovers(blobs)) {
    if (whole.has(name)) await rm(path, { force: true });
  }
}
