import { indexFile } from "../checkpoint/tensors.ts";
import type { Shard } from "./convert-plan.ts";
import type { OutputFile, OutputFolder } from "./output.ts";

/**
 * Writes the tensors of all shards, and the index that names their files.
 *
 * @param onBytes called after each block that was written
 */
export async function writeShards(
  output: OutputFolder,
  shards: readonly Shard[],
  onBytes: (tensor: string, bytes: number) => void,
): Promise<void> {
  for (const shard of shards) {
    await writeFile(output, shard.path, (file) => writeShard(file, shard, onBytes));
  }
  await writeJson(output, indexFile, indexOf(shards));
}

export async function writeJson(output: OutputFolder, path: string, value: unknown): Promise<void> {
  await writeText(output, path, `${JSON.stringify(value, null, 2)}\n`);
}

export async function writeText(output: OutputFolder, path: string, text: string): Promise<void> {
  await writeFile(output, path, (file) => file.write(0, new TextEncoder().encode(text)));
}

async function writeShard(
  file: OutputFile,
  { jobs, layout }: Shard,
  onBytes: (tensor: string, bytes: number) => void,
): Promise<void> {
  await file.write(0, layout.header);
  for (const job of jobs) {
    await job.run(async (tensor, offset, bytes) => {
      const name = job.tensors[tensor]?.name ?? "";
      await file.write((layout.offsets.get(name) ?? 0) + offset, bytes);
      onBytes(name, bytes.length);
    });
  }
}

function indexOf(shards: readonly Shard[]): unknown {
  const places = shards.flatMap(({ path, layout }) =>
    [...layout.offsets.keys()].map((name) => [name, path] as const),
  );
  places.sort(([a], [b]) => (a < b ? -1 : 1));
  const bytes = shards.reduce(
    (sum, { layout }) => sum + layout.fileBytes - layout.header.length,
    0,
  );
  return { metadata: { total_size: bytes }, weight_map: Object.fromEntries(places) };
}

async function writeFile(
  output: OutputFolder,
  path: string,
  write: (file: OutputFile) => Promise<void>,
): Promise<void> {
  const file = await output.create(path);
  await write(file);
  await file.close();
}
