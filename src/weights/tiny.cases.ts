import { readConfig } from "../checkpoint/config.ts";
import { readDrafterConfig } from "../checkpoint/drafter-config.ts";
import {
  type Files,
  memoryFolder,
  type RawTensor,
  safetensorsFile,
  tinyConfig,
  tinyDrafterConfig,
} from "../checkpoint/files.cases.ts";
import { drafterMatrixRoles, drafterVectorRoles } from "./drafter-roles.ts";
import { bytesOf, narrowToBf16 } from "./floats.ts";
import { randomWeights } from "./random.ts";
import { randomDrafterWeights } from "./random-drafter.ts";
import { matrixRoles, vectorRoles } from "./roles.ts";

/** The tensors of a tiny Hugging Face checkpoint of random bf16, with an f32 A_log. */
export async function tinyTensors(config: object = tinyConfig()): Promise<RawTensor[]> {
  const files = new Map([["config.json", JSON.stringify(config)]]);
  const { shape } = await readConfig(memoryFolder(files));
  const weights = randomWeights(shape, { seed: 7, bits: "bf16" });
  const tensors: RawTensor[] = [];
  for (const { path, rows, cols } of matrixRoles(shape)) {
    const matrix = weights.matrix(path);
    if (matrix.kind !== "dense") throw new Error(`${path} is quantised`);
    const name = path === "lm_head" ? "lm_head.weight" : `model.${path}.weight`;
    tensors.push({ name, dtype: "BF16", shape: [rows, cols], data: await matrix.read(0, rows) });
  }
  for (const role of vectorRoles(shape)) {
    const values = await weights.vector(role.path);
    const stored = role.kind === "centred" ? values.map((value) => value - 1) : values;
    const isF32 = role.path.endsWith("A_log");
    const [first = 0, taps = 0] = role.shape;
    tensors.push({
      name: `model.${role.tensor}`,
      dtype: isF32 ? "F32" : "BF16",
      shape: role.kind === "conv" ? [first, 1, taps] : role.shape,
      data: bytesOf(isF32 ? stored : narrowToBf16(stored)),
    });
  }
  return tensors;
}

/** The tensors of a tiny drafter of random bf16, with codebooks that count. */
export async function tinyDrafterTensors(
  config: object = tinyDrafterConfig(),
): Promise<RawTensor[]> {
  const files = new Map([["config.json", JSON.stringify(config)]]);
  const { shape } = await readDrafterConfig(memoryFolder(files));
  const weights = randomDrafterWeights(shape, { seed: 8, bits: "bf16" });
  const tensors: RawTensor[] = [];
  for (const { path, rows, cols } of drafterMatrixRoles(shape)) {
    const matrix = weights.matrix(path);
    if (matrix.kind !== "dense") throw new Error(`${path} is quantised`);
    const data = await matrix.read(0, rows);
    tensors.push({ name: `${path}.weight`, dtype: "BF16", shape: [rows, cols], data });
  }
  for (const { path, tensor, shape: dims } of drafterVectorRoles(shape)) {
    const data = bytesOf(narrowToBf16(await weights.vector(path)));
    tensors.push({ name: tensor, dtype: "BF16", shape: dims, data });
  }
  for (const [index, name] of ["predecessor", "successor"].entries()) {
    if (!shape.selector) break;
    const values = Float32Array.from(
      { length: shape.vocabSize * shape.selector.rank },
      (_, at) => (at % 251) - 125 + index,
    );
    tensors.push({
      name: `candidate_selector.${name}_codebook`,
      dtype: "BF16",
      shape: [shape.vocabSize, shape.selector.rank],
      data: bytesOf(narrowToBf16(values)),
    });
  }
  return tensors;
}

/** A folder's files for the given tensors. */
export function tinyFiles(tensors: readonly RawTensor[], config: object = tinyConfig()): Files {
  return new Map<string, Uint8Array | string>([
    ["model.safetensors", safetensorsFile(tensors)],
    ["config.json", JSON.stringify(config)],
    ["tokenizer.json", '{"tokenizer": "stands for itself"}'],
  ]);
}
