import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import type { DrafterShape } from "../model/drafter-shape.ts";
import { type DrafterVectorRole, drafterMatrixRoles, drafterVectorRoles } from "./drafter-roles.ts";
import type { DrafterWeights } from "./drafter-weights.ts";
import { hashName, uniform } from "./hash32.ts";
import { matrixBytes } from "./matrix-bytes.ts";
import { elementCount, type RandomOptions, randomMatrix } from "./random.ts";
import { tensorsByPath } from "./tensors-by-path.ts";

/**
 * A drafter of any shape, made up from a seed as `randomWeights` is: norms 1 ± 0.2, convolutions that
 * mostly pass the current row on.
 */
export function randomDrafterWeights(shape: DrafterShape, options: RandomOptions): DrafterWeights {
  const roles = drafterMatrixRoles(shape);
  const matrices = new Map(roles.map((role) => [role.path, randomMatrix(role, options)]));
  const vectorRoles = drafterVectorRoles(shape);
  const vectors = new Map(
    vectorRoles.map((role) => [
      role.path,
      async () => randomVector(role, hashName(options.seed, role.path)),
    ]),
  );
  const matrixSum = [...matrices.values()].reduce((sum, matrix) => sum + matrixBytes(matrix), 0);
  const floats = vectorRoles.reduce((sum, role) => sum + elementCount(role.shape), 0);
  return {
    shape,
    storedBytes: matrixSum + 4 * floats,
    fingerprint: bytesToHex(sha256(utf8ToBytes(JSON.stringify(["drafter", shape, options])))),
    ...tensorsByPath(matrices, vectors),
  };
}

function randomVector(role: DrafterVectorRole, seed: number): Float32Array {
  const channels = role.shape.at(-1)!;
  const kernel = role.path.endsWith("base_kernel");
  return Float32Array.from({ length: elementCount(role.shape) }, (_, at) => {
    const around = 0.4 * uniform(seed, at) - 0.2;
    const previousTap = kernel && Math.floor(at / channels) % 2 === 1;
    return previousTap ? around : 1 + around;
  });
}
