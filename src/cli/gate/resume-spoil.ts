import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { invariant } from "../../errors.ts";
import { decodeSpill, encodeSpill, portableHash } from "../../state/spill-file.ts";
import { readHeader } from "../../state/spill-header.ts";
import { spillName } from "../../state/spilled.ts";

/** Linux gives no process such a number. */
const nobody = 2 ** 22 + 1;

/** Files of spilled prompts in a folder. */
export async function spilledFiles(folder: string): Promise<string[]> {
  return (await readdir(folder)).filter((file) => file.endsWith(".spill"));
}

/** What writers that died have left. */
export async function partFiles(folder: string): Promise<string[]> {
  return (await readdir(folder)).filter((file) => file.endsWith(".part"));
}

/** Flips a bit of the floats in every file. @returns how many there are */
export async function damageFiles(folder: string): Promise<number> {
  const files = await spilledFiles(folder);
  for (const file of files) {
    const bytes = await readFile(join(folder, file));
    const at = bytes.length - 64;
    bytes[at] = bytes[at]! ^ 1;
    await writeFile(join(folder, file), bytes);
  }
  return files.length;
}

/** Adds files that are torn, foreign or misnamed. @returns their names */
export async function plantFiles(folder: string): Promise<string[]> {
  const [whole] = await spilledFiles(folder);
  invariant(whole !== undefined, "nothing was spilled");
  const bytes = await readFile(join(folder, whole));
  const { identity } = readHeader(bytes)!;
  const entry = (await decodeSpill(bytes, identity))!;
  const other = { ...identity, build: "another" };
  const foreign = spillName(entry.ids, entry.context, other, portableHash);
  const planted: readonly (readonly [string, Uint8Array])[] = [
    [named("0"), bytes.subarray(0, bytes.length / 2)],
    [named("1"), bytes],
    [named("2"), new Uint8Array(0)],
    [named("3"), new TextEncoder().encode("dfspill\nand no more")],
    [`${foreign}.spill`, Buffer.concat([...encodeSpill(entry, other)])],
    [`${whole}.${nobody}-0123abcd.part`, bytes.subarray(0, 100)],
  ];
  for (const [name, content] of planted) await writeFile(join(folder, name), content);
  return planted.map(([name]) => name);
}

const named = (digit: string): string => `${digit.repeat(32)}.spill`;
