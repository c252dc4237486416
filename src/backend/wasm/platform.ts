import type { FarPlaces } from "./far.ts";

/** What the wasm backend needs of its surroundings: Node or a browser. */
export interface WasmPlatform {
  /** Threads unless the user says: the cores this process may use. */
  readonly threads: number;
  /** The compiled kernels, with or without relaxed SIMD. */
  kernels(relaxed: boolean): Promise<Uint8Array<ArrayBuffer>>;
  /** Starts a thread; resolves when it waits for work. `failed` hears of its death. */
  spawn(setup: ThreadSetup, failed: (error: Error) => void): Promise<WasmThread>;
}

export interface WasmThread {
  terminate(): Promise<void>;
}

/** Everything a thread is told, once. */
export interface ThreadSetup {
  readonly module: WebAssembly.Module;
  readonly memory: WebAssembly.Memory;
  /** Which of the threads this is, from 0. */
  readonly thread: number;
  readonly threads: number;
  readonly program: number;
  readonly instructions: number;
  /** The steps' counters (layout.ts STEP_BYTES each), one more than there are instructions. */
  readonly counters: number;
  readonly pass: number;
  readonly scratch: number;
  /** The other memories that hold matrices, and this thread's places in them (far.ts). */
  readonly far: readonly ThreadFar[];
  /** Whether integer products are added in 32 bits: the bits are the same. */
  readonly wide: boolean;
}

export interface ThreadFar extends FarPlaces {
  readonly memory: WebAssembly.Memory;
}

/** Exports of `kernels/index.ts`. */
export interface KernelExports {
  run(
    program: number,
    count: number,
    pass: number,
    scratch: number,
    threads: number,
    counters: number,
    generation: number,
  ): number;
  /** Multiplies a tile's rows by blocks of a matrix (kernels/project.ts). */
  multiply(
    matrix: number,
    int8: boolean,
    begin: number,
    n: number,
    rows: number,
    scratch: number,
    out: number,
    outStride: number,
    accumulate: boolean,
  ): void;
  /** A row of a matrix as floats (kernels/norm.ts). */
  embedRow(matrix: number, id: number, out: number): void;
  /** Says how this instance adds integer products (kernels/dots.ts). */
  useWide(yes: boolean): void;
  probeMadd(): number;
  probeDot(): number;
  probeSpeed(wide: boolean, at: number, times: number): void;
  probeExp(x: number): number;
}

/** What the kernels call for matrices in other memories (kernels/far.ts). */
export interface FarImports {
  multiplyFar(
    far: number,
    matrix: number,
    int8: number,
    begin: number,
    n: number,
    rows: number,
    scratch: number,
    prepared: number,
    out: number,
    outStride: number,
    accumulate: number,
  ): void;
  embedFar(far: number, matrix: number, id: number, out: number): void;
}

const noFar = (): never => {
  throw new Error("a matrix in another memory, of which there is none");
};
const nothingFar: FarImports = { multiplyFar: noFar, embedFar: noFar };

/** One instance of the kernels over a memory. */
export async function instantiate(
  module: WebAssembly.Module,
  memory: WebAssembly.Memory,
  far: FarImports = nothingFar,
): Promise<KernelExports> {
  const abort = () => {
    throw new Error("a kernel aborted");
  };
  const instance = await WebAssembly.instantiate(module, { env: { memory, abort, ...far } });
  return instance.exports as unknown as KernelExports;
}
