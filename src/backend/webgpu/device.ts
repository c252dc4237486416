import { nextTask } from "../../clock.ts";
import { BackendError, BackendLostError, InputError, messageOf } from "../../errors.ts";
import { listOf, textToAsk } from "./adapters.ts";
import { adapterOptions, type GpuPlatform } from "./platform.ts";

/** Features used where an adapter has them. */
const wantedFeatures: readonly GPUFeatureName[] = ["shader-f16", "subgroups"];

/** Products of 16 × 16 by 16 × 8 tiles in f16 with f32 sums, by the GPU's matrix unit. */
export const matrixFeature = "chromium-experimental-subgroup-matrix" as GPUFeatureName;

/** Whether the matrix unit has the one tile that the kernels use, for warps of 32. */
export function hasMatrixUnit({ features, info }: GPUAdapter): boolean {
  const { subgroupMatrixConfigs = [], subgroupMinSize, subgroupMaxSize } = info as MatrixInfo;
  const tile = subgroupMatrixConfigs.some(
    ({ componentType, resultComponentType, M, N, K }) =>
      componentType === "f16" && resultComponentType === "f32" && M === 16 && N === 8 && K === 16,
  );
  const warps = subgroupMinSize === 32 && subgroupMaxSize === 32;
  return features.has("shader-f16") && features.has(matrixFeature) && tile && warps;
}

/** What Dawn tells beyond the standard. */
interface MatrixInfo extends GPUAdapterInfo {
  readonly subgroupMatrixConfigs?: readonly {
    readonly componentType: string;
    readonly resultComponentType: string;
    readonly M: number;
    readonly N: number;
    readonly K: number;
  }[];
}

/** Limits that are raised to the adapter's own. */
const wantedLimits = [
  "maxBufferSize",
  "maxStorageBufferBindingSize",
  "maxStorageBuffersPerShaderStage",
  "maxComputeInvocationsPerWorkgroup",
  "maxComputeWorkgroupSizeX",
  "maxComputeWorkgroupStorageSize",
] as const;

/** The features that a device of the adapter is opened with. */
export const featuresOf = (adapter: GPUAdapter): GPUFeatureName[] => [
  ...wantedFeatures.filter((name) => adapter.features.has(name)),
  ...(hasMatrixUnit(adapter) ? [matrixFeature] : []),
];

/** What people know the adapter by. */
export const nameOf = ({ info }: GPUAdapter): string =>
  info.description || `${info.vendor} ${info.architecture}`;

/** An opened device and what it is. */
export interface OpenDevice {
  readonly device: GPUDevice;
  readonly guard: DeviceGuard;
  readonly description: string;
  /** Everything about the adapter on which results may depend. */
  readonly identity: string;
  readonly features: ReadonlySet<string>;
}

/**
 * @param choice an adapter's place in the list, or part of its name; null takes the first
 * @throws BackendError where there is no adapter or it gives no device; InputError for a wrong choice
 */
export async function openDevice(
  platform: GpuPlatform,
  choice: string | null,
): Promise<OpenDevice> {
  const adapter = await requestAdapter(platform, choice);
  const requiredFeatures = featuresOf(adapter);
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
  return {
    device,
    guard: new DeviceGuard(device),
    description: nameOf(adapter),
    identity: `${platform.implementation}, ${vendor} ${architecture} ${description}`,
    features: new Set<string>(requiredFeatures),
  };
}

/**
 * @param choice as `openDevice` has it
 * @throws BackendError where there is none; InputError with a list of all for a wrong choice
 */
export async function requestAdapter(
  platform: GpuPlatform,
  choice: string | null,
): Promise<GPUAdapter> {
  const asked = choice === null ? null : await textToAsk(platform, choice);
  let adapter: GPUAdapter | null = null;
  try {
    adapter = await platform.gpu(asked).requestAdapter(adapterOptions);
  } catch (cause) {
    if (cause instanceof BackendError || asked === null) throw cause;
  }
  if (adapter) return adapter;
  const names = asked === null ? [] : await platform.adapterNames();
  if (names.length > 0) {
    throw new InputError(
      `No WebGPU adapter has ${JSON.stringify(asked)} in its name. There are: ${listOf(names)}.`,
    );
  }
  throw new BackendError(`There is no WebGPU adapter on this machine. ${platform.missingAdapter}`);
}

/**
 * Knows whether a device is there. One that has refused work which nobody waited for counts as lost and
 * is destroyed: what its buffers hold is no longer known.
 */
export class DeviceGuard {
  /** Resolves when the device is gone. */
  readonly lost: Promise<BackendLostError>;
  #error: BackendLostError | null = null;

  constructor(device: GPUDevice) {
    device.addEventListener("uncapturederror", (event) => {
      event.preventDefault();
      this.#error ??= new BackendLostError(`The GPU refused work: ${event.error.message}`);
      // Later: Dawn's destroy waits for ever for the callback that called this.
      void nextTask().then(() => device.destroy());
    });
    this.lost = device.lost.then(({ reason, message }) => {
      this.#error ??= new BackendLostError(`The GPU device was lost (${reason}): ${message}`);
      return this.#error;
    });
  }

  /** @throws BackendLostError: a lost device pretends that all goes well, and only maps fail */
  check(): void {
    if (this.#error) throw this.#error;
  }

  /** What to throw for `cause`: the loss, where it came of that. */
  async explain(cause: unknown): Promise<unknown> {
    // A map may fail a moment before the loss behind it is told.
    if (!this.#error) await nextTask();
    return this.#error ?? cause;
  }
}
