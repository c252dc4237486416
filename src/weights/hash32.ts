/** The i-th number of a seeded sequence of 32-bit integers: any part of it, in any order. */
export function hash32(seed: number, index: number): number {
  let x = (seed + Math.imul(index + 1, 0x9e3779b9)) | 0;
  x = Math.imul(x ^ (x >>> 16), 0x85ebca6b);
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35);
  return (x ^ (x >>> 16)) >>> 0;
}

/** A seed for a name, so that the tensors of one model differ. */
export function hashName(seed: number, name: string): number {
  let state = hash32(seed, name.length);
  for (let i = 0; i < name.length; i++) state = hash32(state, name.charCodeAt(i));
  return state;
}

/** A number of a seeded sequence, uniform in [0, 1) in steps of 2^-32. */
export function uniform(seed: number, index: number): number {
  return hash32(seed, index) / 2 ** 32;
}
