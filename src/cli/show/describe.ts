import { type Checkpoint, openCheckpoint } from "../../checkpoint/checkpoint.ts";
import { openFolder } from "../../checkpoint/source-node.ts";
import type { ModelShape } from "../../model/shape.ts";
import { openTemplate } from "../../open-text.ts";
import { weightsFromCheckpoint } from "../../weights/from-checkpoint.ts";
import { matrixRoles, vectorRoles } from "../../weights/roles.ts";
import type { Weights } from "../../weights/weights.ts";
import { findHere } from "../pull/find.ts";

/** What `show` prints, as its `--json` does. */
export interface ModelDescription {
  readonly folder: string;
  readonly model_type: string;
  readonly layout: Checkpoint["layout"];
  readonly shape: ModelShape;
  readonly parameters: number;
  /** How the matrices are stored, most values first. */
  readonly formats: readonly MatrixFormat[];
  /** Bits that a parameter takes on average, scales and all. */
  readonly bits_per_parameter: number;
  /** Tensors that the text model uses. */
  readonly weight_bytes: number;
  /** The weight files as they are. */
  readonly file_bytes: number;
  readonly files: number;
  readonly eos_ids: readonly number[];
  readonly context_max: number;
  readonly chat_template: boolean;
  /** Sampling that the checkpoint recommends; null where it says nothing. */
  readonly sampling: Checkpoint["config"]["generation"];
}

export interface MatrixFormat {
  /** Such as "4-bit affine, groups of 64", or "bf16". */
  readonly format: string;
  readonly parameters: number;
}

/**
 * Everything about a model that can be told without reading its tensors. All that would keep it
 * from loading, short of broken values, is found on the way.
 *
 * @throws CheckpointError, InputError
 */
export async function describeModel(model: string): Promise<ModelDescription> {
  const folder = await openFolder((await findHere(model)).folder);
  await using checkpoint = await openCheckpoint(folder);
  const { config, headers, layout } = checkpoint;
  const { shape } = config;
  const weights = await weightsFromCheckpoint(checkpoint);
  const vectorValues = vectorRoles(shape).map((role) => role.shape.reduce((a, b) => a * b, 1));
  const formats = matrixFormats(weights);
  const parameters = total([...vectorValues, ...formats.map((format) => format.parameters)]);
  return {
    folder: folder.name,
    model_type: config.modelType,
    layout,
    shape,
    parameters,
    formats,
    bits_per_parameter: (8 * weights.storedBytes) / parameters,
    weight_bytes: weights.storedBytes,
    file_bytes: total(headers.map((header) => header.fileBytes)),
    files: headers.length,
    eos_ids: config.eosIds,
    context_max: shape.contextMax,
    chat_template: (await openTemplate(folder)) !== null,
    sampling: config.generation,
  };
}

function matrixFormats(weights: Weights): MatrixFormat[] {
  const counts = new Map<string, number>();
  for (const { path, rows, cols } of matrixRoles(weights.shape)) {
    const matrix = weights.matrix(path);
    const format =
      matrix.kind === "dense"
        ? matrix.dtype
        : `${matrix.bits}-bit affine, groups of ${matrix.groupSize}`;
    counts.set(format, (counts.get(format) ?? 0) + rows * cols);
  }
  return [...counts]
    .map(([format, parameters]) => ({ format, parameters }))
    .sort((a, b) => b.parameters - a.parameters);
}

const total = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);
