// Matrices in other memories (../far.ts): what the thread does there, for the instance that runs the program.

/**
 * `multiply` of project.ts over memory `far`: `matrix` is its record, and `prepared` bytes of activations behind
 * SCRATCH_PREPARED go along, none where that memory has them already.
 */
@external("env", "multiplyFar")
export declare function multiplyFar(
  far: i32,
  matrix: usize,
  int8: bool,
  begin: i32,
  n: i32,
  rows: i32,
  scratch: usize,
  prepared: usize,
  out: usize,
  outStride: usize,
  accumulate: bool,
): void;

/** `embedRow` of norm.ts over memory `far`. */
@external("env", "embedFar")
export declare function embedFar(far: i32, matrix: usize, id: i32, out: usize): void;
