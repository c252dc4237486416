import { DeviceGuard, type OpenDevice } from "./device.ts";
import type { GpuPlatform } from "./platform.ts";

/** The constants of WebGPU, where no implementation has brought them. */
const constants = {
  GPUBufferUsage: {
    MAP_READ: 0x1,
    COPY_SRC: 0x4,
    COPY_DST: 0x8,
    UNIFORM: 0x40,
    STORAGE: 0x80,
  },
  GPUMapMode: { READ: 0x1 },
  GPUShaderStage: { COMPUTE: 0x4 },
};

/** A device that takes everything and does nothing, with the limits of a large GPU. */
export function stubDevice(): Pick<OpenDevice, "device" | "guard"> {
  for (const [name, value] of Object.entries(constants)) {
    if (!(name in globalThis)) Object.defineProperty(globalThis, name, { value });
  }
  const nothing = async () => null;
  const some = () => ({});
  const queue = { writeBuffer: some, submit: some, onSubmittedWorkDone: nothing };
  const pass = { setPipeline: some, setBindGroup: some, dispatchWorkgroups: some, end: some };
  const device = {
    features: new Set(["shader-f16", "subgroups"]),
    adapterInfo: { isFallbackAdapter: false },
    limits: {
      maxBufferSize: 2 ** 40,
      maxStorageBufferBindingSize: 2 ** 31 - 4,
      maxComputeWorkgroupStorageSize: 48 * 1024,
      maxComputeWorkgroupsPerDimension: 65_535,
      maxComputeInvocationsPerWorkgroup: 1024,
      maxComputeWorkgroupSizeX: 1024,
    },
    lost: new Promise(() => {}),
    destroy: some,
    queue,
    addEventListener: some,
    removeEventListener: some,
    pushErrorScope: some,
    popErrorScope: nothing,
    createBuffer: ({ size }: GPUBufferDescriptor) => ({
      size,
      destroy: some,
      mapAsync: nothing,
      getMappedRange: (_: number, bytes: number) => new ArrayBuffer(bytes),
      unmap: some,
    }),
    createBindGroup: some,
    createBindGroupLayout: some,
    createPipelineLayout: some,
    createShaderModule: some,
    createComputePipeline: () => ({ getBindGroupLayout: some }),
    createComputePipelineAsync: async () => ({ getBindGroupLayout: some }),
    createCommandEncoder: () => ({
      beginComputePass: () => pass,
      clearBuffer: some,
      copyBufferToBuffer: some,
      finish: some,
    }),
  } as unknown as GPUDevice;
  return { device, guard: new DeviceGuard(device) };
}

/** Gives stub devices. */
export const stubPlatform: GpuPlatform = {
  implementation: "stub",
  missingAdapter: "",
  adapterNames: async () => ["stub"],
  gpu() {
    const { device } = stubDevice();
    const { features, limits } = device;
    const info = { vendor: "", architecture: "", description: "stub" };
    const adapter = { features, limits, info, requestDevice: async () => device };
    return { requestAdapter: async () => adapter } as unknown as GPU;
  },
};
