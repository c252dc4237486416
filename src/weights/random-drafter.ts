import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { invariant } from "../errors.ts";
import type { DrafterShape } from "../model/drafter-shape.ts";
import { type DrafterVectorRole, drafterMatrixRoles, drafterVectorRoles } from "./drafter-roles.ts";
import type { DrafterWeights } from "./drafter-weights.ts";
import { hashName, uniform } from "./hash32.ts";
import { matrixBytes } from "./matrix-bytes.ts";
import { type RandomOptions, randomMatrix } from "./random.ts";

/**
 * A drafter of any shape, made up from a seed as `randomWeights` is: norms 1 ± 0.2, convolutions that
 * mostly pass the current row on.
 */
export function randomDrafterWeights(shape: DrafterShape, options: RandomOptions): DrafterWeights {
  const roles = drafterMatrixRoles(shape);
  const matrices = new Map(roles.map((role) => [role.path, randomMatrix(role, options)]));
  const vectors = new Map(drafterVectorRoles(shape).map((role) => [role.path, role]));
  const matrixSum = [...matrices.values()].reduce((sum, matrix) => sum + matrixBytes(matrix), 0);
  const floats = [...vectors.values()].reduce((sum, role) => sum + lengthOf(role), 0);
  return {
    shape,
    storedBytes: matrixSum + 4 * floats,
    fingerprint: bytesToHex(sha256(utf8ToBytes(JSON.stringify(["drafter", shape, options])))),
    matrix(path) {
      const matrix = matrices.get(path);
      invariant(matrix !== undefined, `no matrix ${path}`);
      return matrix;
    },
    async vector(path) {
      const role = vectors.get(path);
      invariant(role !== undefined, `no vector ${path}`);
      return randomVector(role, hashName(options.seed, path));
    },
  };
}

const lengthOf = ({ shape }: DrafterVectorRole): number =>
  shape.reduce((product, size) => product * size, 1);

function randomVector(role: DrafterVectorRole, seed: number): Float32Array {
  const channels = role.shape.at(-1)!;
  const kernel = role.path.endsWith("base_kernel");
  return Float32Array.from({ length: lengthOf(role) }, (_, at) => {
    const around = 0.4 * uniform(seed, at) - 0.2;
    const previousTap = kernel && Math.floor(at / channels) % 2 === 1;
    return previousTap ? around : 1 + around;
  });
}
