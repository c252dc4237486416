import { spawnSync } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tinyConfig } from "../checkpoint/files.cases.ts";
import { tinyFiles, tinyTensors } from "./tiny.cases.ts";

const victim = join(import.meta.dirname, "../../scripts/convert-victim.ts");

/** A conversion that can be killed at any of its points. */
export interface KillBench extends AsyncDisposable {
  readonly points: number;
  /** What was wrong after a kill at this point; null: nothing. */
  fault(point: number): Promise<string | null>;
}

/** @param layers of the model that is converted: more of them make more points */
export async function openKillBench(layers: number): Promise<KillBench> {
  const root = await mkdtemp(join(tmpdir(), "deltafold-kill-"));
  const [source, whole, work] = ["source", "whole", "work"].map((name) => join(root, name));
  if (!source || !whole || !work) throw new Error("three names make three paths");
  await mkdir(source);
  const config = { ...tinyConfig(), num_hidden_layers: layers, layer_types: null };
  for (const [name, content] of tinyFiles(await tinyTensors(config), config)) {
    await writeFile(join(source, name), content);
  }
  const points = Number(convertUntil(source, whole, Number.POSITIVE_INFINITY).stdout);
  const expected = await filesOf(whole);
  return {
    points,
    async fault(point) {
      await mkdir(work);
      try {
        const { signal, stderr } = convertUntil(source, join(work, "out"), point);
        if (signal !== "SIGKILL") return `it was not killed: ${stderr}`;
        const left = await readdir(work);
        const others = left.filter((name) => !/^\.deltafold-partial-|^out$/.test(name));
        if (others.length > 0) return `it left ${others.join(", ")}`;
        if (!left.includes("out")) return null;
        const made = await filesOf(join(work, "out"));
        return made === expected ? null : "its output is not whole";
      } finally {
        await rm(work, { recursive: true });
      }
    },
    [Symbol.asyncDispose]: () => rm(root, { recursive: true }),
  };
}

function convertUntil(source: string, output: string, point: number) {
  const args = [victim, source, output, String(point)];
  return spawnSync(process.execPath, args, { encoding: "utf8" });
}

/** Names and contents, to be compared. */
async function filesOf(folder: string): Promise<string> {
  const names = (await readdir(folder)).sort();
  const contents = await Promise.all(names.map((name) => readFile(join(folder, name), "base64")));
  return JSON.stringify([names, contents]);
}
