import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { InvariantError } from "../errors.ts";
import type { ModelShape } from "../model/shape.ts";
import { hashName, uniform } from "./hash32.ts";
import { matrixBytes } from "./matrix-bytes.ts";
import { randomAffine, randomDense } from "./random-matrix.ts";
import { type MatrixRole, matrixRoles, type VectorRole, vectorRoles } from "./roles.ts";
import { tensorsByPath } from "./tensors-by-path.ts";
import type { AffineBits, AffineGroupSize, Matrix, Weights } from "./weights.ts";

export interface RandomOptions {
  /** Any integer; equal seeds give equal weights. */
  readonly seed: number;
  readonly bits: AffineBits | "bf16" | "f32";
  /** Of affine matrices, 64 unless given. A matrix whose cols it does not divide is dense bf16. */
  readonly groupSize?: AffineGroupSize;
}

/**
 * Weights of any shape, made up row by row from a seed, so that a 27B needs no file and no memory.
 * Values are sane for a forward pass: matrices of deviation cols^-½, norm weights 1 ± 0.2,
 * A_log = ln U(0.01, 16), dt_bias 1 ± 0.25, conv taps U(−0.6, 0.6).
 */
export function randomWeights(shape: ModelShape, options: RandomOptions): Weights {
  const matrices = new Map<string, Matrix>();
  let storedBytes = 0;
  for (const role of matrixRoles(shape)) {
    const matrix = randomMatrix(role, options);
    matrices.set(role.path, matrix);
    storedBytes += matrixBytes(matrix);
  }
  const embedding = matrices.get("embed_tokens");
  if (shape.tiedHead && embedding !== undefined) matrices.set("lm_head", embedding);
  const roles = vectorRoles(shape);
  for (const role of roles) storedBytes += 4 * elementCount(role.shape);
  const vectors = new Map(
    roles.map((role) => [
      role.path,
      async () => randomVector(role, hashName(options.seed, role.path)),
    ]),
  );
  return {
    shape,
    storedBytes,
    fingerprint: bytesToHex(sha256(utf8ToBytes(JSON.stringify(["random", shape, options])))),
    ...tensorsByPath(matrices, vectors),
  };
}

export function randomMatrix(role: MatrixRole, options: RandomOptions): Matrix {
  const { bits, groupSize = 64 } = options;
  const seed = hashName(options.seed, role.path);
  if (bits === "bf16" || bits === "f32") return randomDense(role, seed, bits);
  if (role.cols % groupSize !== 0) return randomDense(role, seed, "bf16");
  return randomAffine(role, seed, { bits, groupSize });
}

function randomVector(role: VectorRole, seed: number): Float32Array {
  const value = vectorRule(role);
  return Float32Array.from({ length: elementCount(role.shape) }, (_, i) => value(uniform(seed, i)));
}

/** How a uniform number in [0, 1) becomes a value of this role. */
function vectorRule(role: VectorRole): (unit: number) => number {
  if (role.kind === "conv") return (unit) => 1.2 * unit - 0.6;
  if (role.path.endsWith(".A_log")) return (unit) => Math.log(0.01 + 15.99 * unit);
  if (role.path.endsWith(".dt_bias")) return (unit) => 0.75 + 0.5 * unit;
  if (role.path.endsWith("norm")) return (unit) => 0.8 + 0.4 * unit;
  throw new InvariantError(`no rule for random values of ${role.path}`);
}

export function elementCount(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}
