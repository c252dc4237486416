import { CheckpointError } from "../errors.ts";
import { shown } from "../json.ts";
import { type CheckpointConfig, readConfig } from "./config.ts";
import { configFile } from "./config-file.ts";
import { bareName } from "./names.ts";
import type { Folder } from "./source.ts";
import { openTensors, type StoredTensor, type TensorFiles } from "./tensors.ts";

/**
 * - `hf`: convolutions [channels, 1, taps]; zero-centred norms are stored as w
 * - `mlx`: convolutions [channels, taps, 1]; zero-centred norms are stored as 1 + w
 */
type Layout = "hf" | "mlx";

/** An opened checkpoint: everything about it is checked but the values. Close it after loading. */
export interface Checkpoint extends AsyncDisposable {
  readonly folder: Folder;
  readonly config: CheckpointConfig;
  readonly layout: Layout;
  /** Tensors of the text model by name without prefix: `layers.0.mlp.up_proj.weight`. */
  readonly tensors: ReadonlyMap<string, StoredTensor>;
  /** Each weight file's header and size; see `TensorFiles.headers`. */
  readonly headers: TensorFiles["headers"];
  close(): Promise<void>;
}

/**
 * Opens a checkpoint folder: its config, and where each tensor lies. No tensor is read.
 *
 * @throws CheckpointError naming the file, and the field or tensor at fault
 */
export async function openCheckpoint(folder: Folder): Promise<Checkpoint> {
  const config = await readConfig(folder);
  const files = await openTensors(folder);
  try {
    const tensors = textTensors(folder, files);
    return {
      folder,
      config,
      tensors,
      layout: detectLayout(folder, config, tensors),
      headers: files.headers,
      close: files.close,
      [Symbol.asyncDispose]: files.close,
    };
  } catch (error) {
    await files.close();
    throw error;
  }
}

function textTensors(folder: Folder, files: TensorFiles): ReadonlyMap<string, StoredTensor> {
  const tensors = new Map<string, StoredTensor>();
  for (const tensor of files.tensors.values()) {
    const name = bareName(tensor.name);
    if (name === null) continue;
    const other = tensors.get(name);
    if (other !== undefined) {
      throw new CheckpointError(
        folder.name,
        `tensors ${other.name} and ${tensor.name} are the same part of the model`,
      );
    }
    tensors.set(name, tensor);
  }
  return tensors;
}

/**
 * The convolution's axes are the only sign of the layout that every converter leaves alike; norm
 * means and `mtp.*` tensors are not. A model without convolutions counts as Hugging Face's.
 */
function detectLayout(
  folder: Folder,
  { shape }: CheckpointConfig,
  tensors: ReadonlyMap<string, StoredTensor>,
): Layout {
  const layer = shape.layerTypes.indexOf("linear");
  if (layer < 0) return "hf";
  const name = `layers.${layer}.linear_attn.conv1d.weight`;
  const conv = tensors.get(name);
  if (conv === undefined) {
    throw new CheckpointError(folder.name, `has no tensor ${name}, which ${configFile} calls for`);
  }
  const [, second, third] = conv.shape;
  if (conv.shape.length === 3 && second === 1 && third === shape.convTaps) return "hf";
  if (conv.shape.length === 3 && second === shape.convTaps && third === 1) return "mlx";
  throw new CheckpointError(
    conv.file,
    `tensor ${conv.name} is ${shown(conv.shape)}, expected [channels, 1, ${shape.convTaps}] or ` +
      `[channels, ${shape.convTaps}, 1]`,
  );
}
