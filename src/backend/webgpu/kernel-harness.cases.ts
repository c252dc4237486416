import { messageOf } from "../../errors.ts";
import type { AttentionCut } from "./attention-cut.ts";
import { type OpenDevice, openDevice } from "./device.ts";
import { type KernelName, Pipelines } from "./pipelines.ts";
import { nodeGpuPlatform } from "./platform-node.ts";
import "./polling.cases.ts";
import type { Defines } from "./preprocess.ts";

/** One kernel over given buffers. */
export interface Dispatch {
  readonly kernel: KernelName;
  readonly defines: Defines;
  /** Binding 0: 16 words at most. */
  readonly parameters: readonly number[];
  /** Binding 1: what `encodePass` returns. */
  readonly pass: GPUBuffer;
  /** Bindings from 2 on. */
  readonly buffers: readonly GPUBuffer[];
  readonly size: readonly [x: number, y: number, z: number];
}

// Mesa spends most of these tests' time on compiling variants that run a few times each.
process.env["GALLIVM_PERF"] ??= "nopt";

type Words = Float32Array<ArrayBuffer> | Uint32Array<ArrayBuffer> | Uint16Array<ArrayBuffer>;

/** Runs single kernels on the first adapter of this machine, for tests. */
export class KernelHarness implements AsyncDisposable {
  readonly name: string;
  readonly #open: OpenDevice;
  readonly #pipelines: Pipelines;
  readonly #buffers: GPUBuffer[] = [];

  private constructor(open: OpenDevice) {
    this.#open = open;
    this.#pipelines = new Pipelines(open.device);
    this.name = open.description;
  }

  /** A harness, or why this machine can't have one. */
  static async open(): Promise<KernelHarness | string> {
    try {
      return new KernelHarness(await openDevice(nodeGpuPlatform, null));
    } catch (error) {
      return messageOf(error);
    }
  }

  has(feature: string): boolean {
    return this.#open.features.has(feature);
  }

  /** A buffer that holds `values`, and zeros up to a multiple of 16 bytes. */
  upload(values: Words): GPUBuffer {
    const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
    const size = Math.max(16, Math.ceil(values.byteLength / 16) * 16);
    const buffer = this.#open.device.createBuffer({ size, usage });
    this.#buffers.push(buffer);
    const bytes = new Uint8Array(size);
    bytes.set(new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
    this.#open.device.queue.writeBuffer(buffer, 0, bytes);
    return buffer;
  }

  /** Submits one dispatch. @throws where the kernel does not compile or the dispatch is refused */
  async run(dispatch: Dispatch): Promise<void> {
    const { device } = this.#open;
    const kernel = await this.#pipelines.get(dispatch.kernel, dispatch.defines);
    const words = new Uint32Array(16);
    words.set(dispatch.parameters);
    const uniform = device.createBuffer({
      size: 64,
      usage: GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST,
    });
    this.#buffers.push(uniform);
    device.queue.writeBuffer(uniform, 0, words);
    device.pushErrorScope("validation");
    const bindGroup = device.createBindGroup({
      layout: kernel.layout,
      entries: [uniform, dispatch.pass, ...dispatch.buffers].map((buffer, binding) => ({
        binding,
        resource: { buffer },
      })),
    });
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(kernel.pipeline);
    pass.setBindGroup(0, bindGroup);
    pass.dispatchWorkgroups(...dispatch.size);
    pass.end();
    device.queue.submit([encoder.finish()]);
    const error = await device.popErrorScope();
    if (error) throw new Error(`${dispatch.kernel}: ${error.message}`);
  }

  /** A buffer's bytes, after everything submitted. */
  async read(buffer: GPUBuffer): Promise<ArrayBuffer> {
    const { device } = this.#open;
    const usage = GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST;
    const staging = device.createBuffer({ size: buffer.size, usage });
    const encoder = device.createCommandEncoder();
    encoder.copyBufferToBuffer(buffer, 0, staging, 0, buffer.size);
    device.queue.submit([encoder.finish()]);
    await staging.mapAsync(GPUMapMode.READ);
    const copy = staging.getMappedRange().slice(0);
    staging.destroy();
    return copy;
  }

  /** Frees every buffer given out. */
  free(): void {
    for (const buffer of this.#buffers) buffer.destroy();
    this.#buffers.length = 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.free();
    await this.#open.device.queue.onSubmittedWorkDone();
    this.#open.device.destroy();
  }
}

/** For passes whose kernels don't attend. */
export const noAttention: AttentionCut = {
  blocks: [],
  blockRows: 1,
  span: 1,
  units: 0,
  partials: 0,
};

/** Where pass.wgsl's inputAt puts a column. */
export function inputAt(bits: 16 | 32, row: number, column: number, stride: number): number {
  if (bits === 16) {
    const block = Math.floor(row / 8) * 8 * stride + Math.floor(column / 64) * 512;
    return block + (row % 8) * 64 + (column % 64);
  }
  const within = column % 1024;
  const quad = Math.floor((within % 32) / 4) * 32 + Math.floor(within / 32);
  return row * stride + column - within + quad * 4 + (within % 4);
}

/** Reproducible numbers: print the seed. */
export class TestRandom {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** In [0, 2^32). */
  word(): number {
    this.#state = (this.#state + 0x9e3779b9) >>> 0;
    let x = this.#state;
    x = Math.imul(x ^ (x >>> 16), 0x85ebca6b);
    x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35);
    return (x ^ (x >>> 16)) >>> 0;
  }

  /** A whole number in [0, count). */
  below(count: number): number {
    return this.word() % count;
  }

  pick<T>(values: readonly T[]): T {
    return values[this.below(values.length)]!;
  }

  /** Near a normal number of deviation 1. */
  normal(): number {
    let sum = 0;
    for (let i = 0; i < 6; i++) sum += this.word() / 2 ** 32;
    return (sum - 3) * Math.SQRT2;
  }

  floats(count: number, scale = 1): Float32Array<ArrayBuffer> {
    return Float32Array.from({ length: count }, () => scale * this.normal());
  }
}
