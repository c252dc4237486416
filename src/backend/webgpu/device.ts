import { BackendError, MemoryError } from "../../errors.ts";
import type { GpuPlatform } from "./platform.ts";

/** Features used where an adapter has them. */
const wantedFeatures: readonly GPUFeatureName[] = ["shader-f16", "subgroups", "timestamp-query"];

/** Limits that are raised to the adapter's own. */
const wantedLimits = [
  "maxBufferSize",
  "maxStorageBufferBindingSize",
  "maxStorageBuffersPerShaderStage",
  "maxComputeInvocationsPerWorkgroup",
  "maxComputeWorkgroupSizeX",
  "maxComputeWorkgroupStorageSize",
] as const;

/** An opened device and what it is. */
export interface OpenDevice {
  readonly device: GPUDevice;
  readonly description: string;
  /** Everything about the adapter on which results may depend. */
  readonly identity: string;
  readonly features: ReadonlySet<string>;
}

/** @throws BackendError where there is no adapter or it gives no device */
export async function openDevice(
  platform: GpuPlatform,
  adapterName: string | null,
): Promise<OpenDevice> {
  const gpu = platform.gpu(adapterName);
  const adapter = await gpu.requestAdapter({ powerPreference: "high-performance" });
  if (!adapter) {
    throw new BackendError("There is no WebGPU adapter on this machine. Use --backend wasm.");
  }
  const requiredFeatures = wantedFeatures.filter((name) => adapter.features.has(name));
  const requiredLimits = Object.fromEntries(
    wantedLimits.map((name) => [name, adapter.limits[name]]),
  );
  let device: GPUDevice;
  try {
    device = await adapter.requestDevice({ requiredFeatures, requiredLimits });
  } catch (cause) {
    throw new BackendError(`The WebGPU adapter gave no device: ${messageOf(cause)}`, cause);
  }
  const { vendor, architecture, description } = adapter.info;
  const name = description || `${vendor} ${architecture}`;
  return {
    device,
    description: name,
    identity: `${platform.implementation}, ${vendor} ${architecture} ${description}`,
    features: new Set<string>(requiredFeatures),
  };
}

export const messageOf = (cause: unknown): string =>
  cause instanceof Error ? cause.message : String(cause);

/** Buffers of one device, counted, and all freed together. */
export class DeviceMemory {
  bytes = 0;
  readonly #device: GPUDevice;
  readonly #buffers: GPUBuffer[] = [];

  constructor(device: GPUDevice) {
    this.#device = device;
  }

  /** How many buffers are alive. */
  get live(): number {
    return this.#buffers.length;
  }

  /**
   * A zeroed buffer of at least `bytes`.
   * @throws MemoryError where the device has no room; what was taken before stays until `free`
   */
  async create(label: string, bytes: number, usage: GPUBufferUsageFlags): Promise<GPUBuffer> {
    const size = Math.max(16, Math.ceil(bytes / 16) * 16);
    if (size > this.#device.limits.maxBufferSize) {
      throw new MemoryError(size, this.#device.limits.maxBufferSize, `${label} is one buffer.`);
    }
    this.#device.pushErrorScope("out-of-memory");
    this.#device.pushErrorScope("validation");
    const buffer = this.#device.createBuffer({ label, size, usage });
    const invalid = await this.#device.popErrorScope();
    const outOfMemory = await this.#device.popErrorScope();
    if (outOfMemory) {
      buffer.destroy();
      throw new MemoryError(this.bytes + size, this.bytes, `The device refused ${label}.`);
    }
    if (invalid) throw new BackendError(`${label}: ${invalid.message}`);
    this.#buffers.push(buffer);
    this.bytes += size;
    return buffer;
  }

  free(): void {
    for (const buffer of this.#buffers) buffer.destroy();
    this.#buffers.length = 0;
    this.bytes = 0;
  }
}
