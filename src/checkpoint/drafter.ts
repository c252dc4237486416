import { type DrafterConfig, readDrafterConfig } from "./drafter-config.ts";
import type { Folder } from "./source.ts";
import { openTensors, type StoredTensor, type TensorFiles } from "./tensors.ts";

/** An opened drafter: its config is checked, its tensors aren't. Close it after loading. */
export interface DrafterCheckpoint extends AsyncDisposable {
  readonly folder: Folder;
  readonly config: DrafterConfig;
  /** By name, as the files have them: `layers.0.mlp.up_proj.weight`. */
  readonly tensors: ReadonlyMap<string, StoredTensor>;
  /** Each weight file's header and size; see `TensorFiles.headers`. */
  readonly headers: TensorFiles["headers"];
  close(): Promise<void>;
}

/**
 * Opens a drafter's folder: its config, and where each tensor lies. No tensor is read.
 *
 * @throws CheckpointError naming the file, and the field or tensor at fault
 */
export async function openDrafter(folder: Folder): Promise<DrafterCheckpoint> {
  const config = await readDrafterConfig(folder);
  const { tensors, headers, close } = await openTensors(folder);
  return { folder, config, tensors, headers, close, [Symbol.asyncDispose]: close };
}
