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
  /** Whether integer products are added in 32 bits: the bits are the same. */
  readonly wide: boolean;
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
  /** Says how this instance adds integer products (kernels/dots.ts). */
  useWide(yes: boolean): void;
  probeMadd(): number;
  probeDot(): number;
  probeSpeed(wide: boolean, at: number, times: number): void;
  probeExp(x: number): number;
}

/** One instance of the kernels over a memory. */
export async function instantiate(
  module: WebAssembly.Module,
  memory: WebAssembly.Memory,
): Promise<KernelExports> {
  const abort = () => {
    throw new Error("a kernel aborted");
  };
  const instance = await WebAssembly.instantiate(module, { env: { memory, abort } });
  return instance.exports as unknown as KernelExports;
}
