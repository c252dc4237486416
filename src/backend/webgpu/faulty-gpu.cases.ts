import type { GpuPlatform } from "./platform.ts";

/** What goes wrong on a `FaultyGpu`, counted over all its devices. */
export interface GpuFaults {
  /** The buffer, from 1, for which there is no room. */
  refuse?: number;
  /** The call, from 1, before which its device is lost. */
  loseAt?: number;
  /** Limits that the adapter has instead of its own. */
  limits?: Partial<Record<keyof GPUSupportedLimits, number>>;
  /** Changes a kernel before it is compiled. */
  code?: (label: string, code: string) => string;
}

/** To be mapped for reading and for writing. */
const impossibleUsage = 3;

/**
 * A platform over another one, whose devices fail as a test says and whose buffers are counted. With
 * `shared`, one device serves every opening, with its kernels: it then outlives its own `destroy`.
 */
export class FaultyGpu implements GpuPlatform {
  readonly implementation: string;
  readonly missingAdapter = "";
  faults: GpuFaults = {};
  /** Buffers made and not destroyed. */
  readonly live: Set<GPUBuffer> = new Set();
  /** Buffers made so far. */
  buffers = 0;
  /** Calls that reached a device or its queue. */
  calls = 0;
  /** Maps that have not ended. */
  mapping = 0;
  /** The device itself, of each opening. */
  readonly devices: GPUDevice[] = [];
  readonly #platform: GpuPlatform;
  readonly #shared: boolean;
  #listener: EventListener | null = null;
  readonly #pipelines = new Map<string, Promise<GPUComputePipeline>>();
  readonly #code = new WeakMap<GPUShaderModule, string>();

  constructor(platform: GpuPlatform, faults: GpuFaults = {}, shared = false) {
    this.implementation = platform.implementation;
    this.#platform = platform;
    this.faults = faults;
    this.#shared = shared;
  }

  gpu(adapter: string | null): GPU {
    const gpu = this.#platform.gpu(adapter);
    return over(gpu, {
      requestAdapter: async (options: GPURequestAdapterOptions) => {
        const found = await gpu.requestAdapter(options);
        return found && this.#adapter(found);
      },
    });
  }

  adapterNames(): Promise<readonly string[]> {
    return this.#platform.adapterNames();
  }

  #adapter(adapter: GPUAdapter): GPUAdapter {
    const limits = this.#limits(adapter.limits);
    return over(adapter, {
      limits,
      requestDevice: async (descriptor: GPUDeviceDescriptor) => {
        const known = this.#shared ? this.devices[0] : undefined;
        const device = known ?? (await adapter.requestDevice(descriptor));
        this.devices.push(device);
        return this.#device(device);
      },
    });
  }

  #limits(limits: GPUSupportedLimits): GPUSupportedLimits {
    return over(limits, this.faults.limits ?? {});
  }

  #device(device: GPUDevice): GPUDevice {
    // Scopes are popped in pairs after a buffer: validation, then memory.
    let popsToRefusal = 0;
    const call = <Result>(work: () => Result): Result => {
      if (++this.calls === this.faults.loseAt) device.destroy();
      return work();
    };
    const { queue } = device;
    return over(device, {
      // The newest opening alone hears of work that is refused.
      addEventListener: (name: string, listener: EventListener) => {
        if (this.#listener) device.removeEventListener(name, this.#listener);
        device.addEventListener(name, listener);
        this.#listener = listener;
      },
      limits: this.#limits(device.limits),
      destroy: () => {
        if (!this.#shared) device.destroy();
      },
      createBuffer: (descriptor: GPUBufferDescriptor) =>
        call(() => {
          const refused = ++this.buffers === this.faults.refuse;
          if (refused) popsToRefusal = 2;
          return this.#counted(
            refused ? unusable(device, descriptor) : device.createBuffer(descriptor),
          );
        }),
      popErrorScope: () =>
        call(async () => {
          const refused = popsToRefusal > 0 && --popsToRefusal === 0;
          const error = await device.popErrorScope();
          return refused ? { message: "planted" } : error;
        }),
      createShaderModule: (descriptor: GPUShaderModuleDescriptor) =>
        call(() => {
          const { label = "", code } = descriptor;
          const changed = this.faults.code?.(label, code) ?? code;
          const module = device.createShaderModule({ ...descriptor, code: changed });
          this.#code.set(module, changed);
          return module;
        }),
      createComputePipelineAsync: (descriptor: GPUComputePipelineDescriptor) =>
        call(() => this.#compile(device, descriptor)),
      queue: over(queue, {
        writeBuffer: (...args: Parameters<GPUQueue["writeBuffer"]>) =>
          call(() => queue.writeBuffer(...args)),
        submit: (buffers: GPUCommandBuffer[]) => call(() => queue.submit(buffers)),
        onSubmittedWorkDone: () => call(() => queue.onSubmittedWorkDone()),
      }),
    });
  }

  #compile(
    device: GPUDevice,
    descriptor: GPUComputePipelineDescriptor,
  ): Promise<GPUComputePipeline> {
    if (!this.#shared) return device.createComputePipelineAsync(descriptor);
    const code = this.#code.get(descriptor.compute.module)!;
    const pipeline = this.#pipelines.get(code) ?? device.createComputePipelineAsync(descriptor);
    this.#pipelines.set(code, pipeline);
    return pipeline;
  }

  #counted(buffer: GPUBuffer): GPUBuffer {
    this.live.add(buffer);
    const destroy = buffer.destroy.bind(buffer);
    const mapAsync = buffer.mapAsync.bind(buffer);
    return Object.assign(buffer, {
      destroy: () => {
        this.live.delete(buffer);
        destroy();
      },
      mapAsync: async (...args: Parameters<GPUBuffer["mapAsync"]>) => {
        this.mapping++;
        try {
          return await mapAsync(...args);
        } finally {
          this.mapping--;
        }
      },
    });
  }
}

/** A buffer as a device gives it that has no room: whatever uses it is refused. Nobody hears of it here. */
function unusable(device: GPUDevice, descriptor: GPUBufferDescriptor): GPUBuffer {
  device.pushErrorScope("validation");
  const buffer = device.createBuffer({ ...descriptor, usage: impossibleUsage });
  void device.popErrorScope().catch(() => {});
  return buffer;
}

/** `target` with some of its members replaced; methods keep it as their `this`. */
export function over<Target extends object>(target: Target, members: object): Target {
  return new Proxy(target, {
    get(_, name) {
      if (name in members) return Reflect.get(members, name);
      const value = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
