import { readShape } from "../../checkpoint/config-shape.ts";
import type { ByteSource } from "../../checkpoint/source.ts";
import { CheckpointError, invariant } from "../../errors.ts";
import { vectorJob } from "../convert-jobs.ts";
import { type ModelSource, mlxShape } from "../convert-model.ts";
import { writeText } from "../convert-write.ts";
import { bytesOf } from "../floats.ts";
import type { OutputFolder } from "../output.ts";
import { type MatrixRole, matrixRoles, type VectorRole, vectorRoles } from "../roles.ts";
import type { DenseMatrix } from "../weights.ts";
import { configOf } from "./config.ts";
import { storedCols, storedRows } from "./head-order.ts";
import { GgufMetadata } from "./metadata.ts";
import { ggufName } from "./names.ts";
import { type GgufHeader, readGgufHeader } from "./open.ts";
import { openRows, type ReadRows } from "./tensor.ts";
import { tokenizerFiles } from "./tokenizer.ts";

/** A model in a GGUF file. */
export interface GgufModel extends ModelSource {
  readonly config: ReadonlyMap<string, unknown>;
  /** Writes the tokenizer and template that the file holds. */
  writeCompanions(output: OutputFolder): Promise<void>;
}

/**
 * Opens a GGUF file of llama.cpp's `qwen35`. What its converter changed is undone as tensors are read:
 * the order of value heads, and `ssm_a` = −exp(A_log). Norms stay 1 + w, as MLX files have them.
 *
 * Every tensor is checked before this returns; one that the model has no place for is refused, except
 * those of draft heads.
 *
 * @throws CheckpointError naming the key or tensor at fault
 */
export async function openGgufModel(source: ByteSource): Promise<GgufModel> {
  const header = await readGgufHeader(source);
  const metadata = new GgufMetadata(header);
  const vocabSize = header.tensors.get(ggufName("embed_tokens"))?.shape[0];
  if (vocabSize === undefined) {
    throw new CheckpointError(source.name, `has no tensor ${ggufName("embed_tokens")}`);
  }
  const config = configOf(metadata, vocabSize, !header.tensors.has(ggufName("lm_head")));
  const shape = readShape(null, { file: source.name, at: "", fields: config });
  const files = tokenizerFiles(metadata);
  const matrices = new Map(
    matrixRoles(shape).map((role) => {
      const rowOrder = storedRows(shape, role.path);
      const colOrder = storedCols(shape, role.path);
      const { rows, cols } = role;
      const place = { name: ggufName(role.path), shape: [rows, cols], cols, rowOrder, colOrder };
      return [role.path, floatMatrix(role, openRows(source, header, place))];
    }),
  );
  const vectors = new Map(
    vectorRoles(shape).map((role) => {
      const rowOrder = storedRows(shape, role.path);
      // A vector that goes by heads is read as rows of one column.
      const cols = role.kind === "conv" || rowOrder === null ? (role.shape.at(-1) ?? 1) : 1;
      const place = {
        name: ggufName(role.path),
        shape: role.shape,
        cols,
        rowOrder,
        colOrder: null,
      };
      const read = openRows(source, header, place);
      const rowCount = role.shape.reduce((product, size) => product * size, 1) / cols;
      return [role.path, () => read(0, rowCount)];
    }),
  );
  refuseStrays(header, shape.layerTypes.length, [...matrices.keys(), ...vectors.keys()]);
  return {
    name: source.name,
    shape,
    config,
    matrix(path) {
      const matrix = matrices.get(path);
      invariant(matrix !== undefined, `no matrix ${path}`);
      return matrix;
    },
    vectorJob(role, name) {
      const read = vectors.get(role.path);
      invariant(read !== undefined, `no vector ${role.path}`);
      if (!role.path.endsWith(".A_log")) return vectorJob(name, "bf16", mlxShape(role), read);
      return vectorJob(name, "f32", role.shape, async () =>
        logDecay(source.name, role, await read()),
      );
    },
    async writeCompanions(output) {
      for (const [path, content] of files) await writeText(output, path, content);
    },
  };
}

function floatMatrix({ rows, cols }: MatrixRole, read: ReadRows): DenseMatrix {
  const bytes = async (firstRow: number, rowCount: number) =>
    bytesOf(await read(firstRow, rowCount));
  return { kind: "dense", rows, cols, dtype: "f32", read: bytes };
}

/** A_log of −exp(A_log). */
function logDecay(file: string, { path }: VectorRole, values: Float32Array): Float32Array {
  if (values.every((value) => value < 0 && value > -Infinity)) {
    return values.map((value) => Math.log(-value));
  }
  throw new CheckpointError(file, `tensor ${ggufName(path)} holds what is no −exp of a number`);
}

function refuseStrays({ file, tensors }: GgufHeader, layers: number, paths: string[]): void {
  const used = new Set(paths.map(ggufName));
  for (const name of tensors.keys()) {
    const block = Number(/^blk\.(\d+)\./.exec(name)?.[1] ?? -1);
    const harmless = block >= layers || name === "rope_freqs.weight";
    if (used.has(name) || harmless) continue;
    throw new CheckpointError(
      file,
      `tensor ${name} has no place in the model that its keys describe`,
    );
  }
}
