import { over } from "./faulty-gpu.cases.ts";
import type { GpuPlatform } from "./platform.ts";

/** A dispatch as it was encoded. */
export interface Dispatched {
  /** The kernel's WGSL. */
  readonly code: string;
  /** Buffers that it may write. */
  readonly writable: readonly GPUBuffer[];
  readonly workgroups: number;
}

/** What commands do to buffers, in their order. */
interface Commands {
  readonly dispatches: Dispatched[];
  /** Destinations of copies and clears. */
  readonly written: GPUBuffer[];
}

/** A platform over another one that notes what is done to buffers, when it is submitted. */
export class CountingGpu implements GpuPlatform {
  readonly implementation: string;
  readonly missingAdapter = "";
  /** Since the last reset, as everything below. */
  dispatches: Dispatched[] = [];
  /** Destinations of copies, clears and writes. */
  written: GPUBuffer[] = [];
  /** Dispatches that were encoded, submitted or not. */
  encoded = 0;
  /** Of each submit with any, its dispatches. */
  submits: number[] = [];
  /** By label. */
  readonly buffers: Map<string, GPUBuffer> = new Map();
  device: GPUDevice | null = null;
  readonly #platform: GpuPlatform;
  readonly #code = new Map<GPUShaderModule | GPUComputePipeline, string>();
  readonly #layouts = new Map<GPUBindGroupLayout, readonly GPUBindGroupLayoutEntry[]>();
  readonly #groups = new Map<GPUBindGroup, readonly GPUBuffer[]>();
  readonly #commands = new WeakMap<GPUCommandBuffer, Commands>();

  constructor(platform: GpuPlatform) {
    this.implementation = platform.implementation;
    this.#platform = platform;
  }

  /** Forgets what was done so far. */
  reset(): void {
    this.dispatches = [];
    this.written = [];
    this.encoded = 0;
    this.submits = [];
  }

  gpu(adapter: string | null): GPU {
    const gpu = this.#platform.gpu(adapter);
    return over(gpu, {
      requestAdapter: async (options: GPURequestAdapterOptions) => {
        const found = await gpu.requestAdapter(options);
        if (!found) return null;
        return over(found, {
          requestDevice: async (descriptor: GPUDeviceDescriptor) => {
            this.device = await found.requestDevice(descriptor);
            return this.#device(this.device);
          },
        });
      },
    });
  }

  adapterNames(): Promise<readonly string[]> {
    return this.#platform.adapterNames();
  }

  #device(device: GPUDevice): GPUDevice {
    const { queue } = device;
    const noted = <Key extends object, Value>(known: Map<Key, Value>, key: Key, value: Value) => {
      known.set(key, value);
      return key;
    };
    return over(device, {
      createBuffer: (descriptor: GPUBufferDescriptor) => {
        const buffer = device.createBuffer(descriptor);
        this.buffers.set(descriptor.label ?? "", buffer);
        return buffer;
      },
      createShaderModule: (descriptor: GPUShaderModuleDescriptor) =>
        noted(this.#code, device.createShaderModule(descriptor), descriptor.code),
      createComputePipelineAsync: async (descriptor: GPUComputePipelineDescriptor) => {
        const code = this.#code.get(descriptor.compute.module)!;
        return noted(this.#code, await device.createComputePipelineAsync(descriptor), code);
      },
      createBindGroupLayout: (descriptor: GPUBindGroupLayoutDescriptor) =>
        noted(this.#layouts, device.createBindGroupLayout(descriptor), [...descriptor.entries]),
      createBindGroup: (descriptor: GPUBindGroupDescriptor) => {
        const types = this.#layouts.get(descriptor.layout)!;
        const writable = [...descriptor.entries].flatMap(({ binding, resource }) => {
          const type = types.find((entry) => entry.binding === binding)!.buffer!.type;
          return type === "storage" ? [(resource as GPUBufferBinding).buffer] : [];
        });
        return noted(this.#groups, device.createBindGroup(descriptor), writable);
      },
      createCommandEncoder: () => this.#encoder(device.createCommandEncoder()),
      queue: over(queue, {
        writeBuffer: (...args: Parameters<GPUQueue["writeBuffer"]>) => {
          this.written.push(args[0]);
          queue.writeBuffer(...args);
        },
        submit: (buffers: readonly GPUCommandBuffer[]) => {
          const commands = buffers.map((buffer) => this.#commands.get(buffer)!);
          const dispatches = commands.flatMap((each) => each.dispatches);
          this.dispatches.push(...dispatches);
          this.written.push(...commands.flatMap((each) => each.written));
          if (dispatches.length > 0) this.submits.push(dispatches.length);
          queue.submit(buffers);
        },
      }),
    });
  }

  #encoder(encoder: GPUCommandEncoder): GPUCommandEncoder {
    const commands: Commands = { dispatches: [], written: [] };
    return over(encoder, {
      beginComputePass: (...args: Parameters<GPUCommandEncoder["beginComputePass"]>) =>
        this.#pass(encoder.beginComputePass(...args), commands),
      copyBufferToBuffer: (...args: [GPUBuffer, number, GPUBuffer, number, number]) => {
        commands.written.push(args[2]);
        encoder.copyBufferToBuffer(...args);
      },
      clearBuffer: (...args: Parameters<GPUCommandEncoder["clearBuffer"]>) => {
        commands.written.push(args[0]);
        encoder.clearBuffer(...args);
      },
      finish: () => {
        const buffer = encoder.finish();
        this.#commands.set(buffer, commands);
        return buffer;
      },
    });
  }

  #pass(pass: GPUComputePassEncoder, commands: Commands): GPUComputePassEncoder {
    let code = "";
    let writable: readonly GPUBuffer[] = [];
    return over(pass, {
      setPipeline: (pipeline: GPUComputePipeline) => {
        code = this.#code.get(pipeline)!;
        pass.setPipeline(pipeline);
      },
      setBindGroup: (index: number, group: GPUBindGroup) => {
        writable = this.#groups.get(group)!;
        pass.setBindGroup(index, group);
      },
      dispatchWorkgroups: (x: number, y = 1, z = 1) => {
        commands.dispatches.push({ code, writable, workgroups: x * y * z });
        this.encoded++;
        pass.dispatchWorkgroups(x, y, z);
      },
    });
  }
}

/**
 * Bytes that a dispatch's stores to the binding `name` write where every thread reaches each of them: the
 * stores of its code, none of which may stand in a loop, by its threads.
 */
export function bytesStored({ code, workgroups }: Dispatched, name: string): number {
  const vector = new RegExp(`var<storage, read_write> ${name}: array<vec([24])<f32>>`);
  const width = Number(code.match(vector)?.[1] ?? 1);
  const threads = code.match(/@workgroup_size\((\d+)\)/)![1]!;
  const open: boolean[] = [];
  let stores = 0;
  for (const line of code.split("\n").map((text) => text.replace(/\/\/.*/, "").trim())) {
    if (line.startsWith(`${name}[`) && line.includes("] = ")) {
      if (open.includes(true)) throw new Error(`a store to ${name} in a loop: ${line}`);
      stores++;
    }
    for (const brace of line.match(/[{}]/g) ?? []) {
      if (brace === "{") open.push(line.startsWith("for "));
      else open.pop();
    }
  }
  return stores * 4 * width * Number(threads) * workgroups;
}
