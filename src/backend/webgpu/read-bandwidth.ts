import { systemClock } from "../../clock.ts";
import { kernelSources } from "./kernels.gen.ts";

/** Bytes that a workgroup of kernels/read.wgsl reads. */
const groupBytes = 64 * 2 ** 10;
/** More than any cache, and little enough for any device. */
const bytesWanted = 512 * 2 ** 20;
/** One sample's time, which hides what a submit costs beside its reads. */
const sampleMs = 25;
const dispatchesMax = 256;

/** How fast a device reads its memory. */
export interface ReadBandwidth {
  /** Of one dispatch. */
  readonly bytes: number;
  /** Dispatches of a sample. */
  readonly dispatches: number;
  readonly samples: number;
  readonly medianBytesPerSecond: number;
  readonly bestBytesPerSecond: number;
}

/**
 * Reads a buffer of 512 MiB, or of what the limits allow, as fast as the device can. It takes that much
 * memory for the while.
 */
export async function measureReadBandwidth(device: GPUDevice, samples = 7): Promise<ReadBandwidth> {
  const { maxBufferSize, maxStorageBufferBindingSize } = device.limits;
  const most = Math.min(bytesWanted, maxBufferSize, maxStorageBufferBindingSize);
  const groups = Math.floor(most / groupBytes);
  const bytes = groups * groupBytes;
  const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST;
  const data = device.createBuffer({ label: "read", size: bytes, usage });
  const found = device.createBuffer({ label: "found", size: 16, usage });
  try {
    fill(device, data);
    const read = await readKernel(device, data, found, groups);
    // The first run is slower than any other; the second says how many make a sample.
    await read(1);
    const once = await read(1);
    const dispatches = Math.min(dispatchesMax, Math.max(1, Math.round(sampleMs / once)));
    const rates: number[] = [];
    for (let sample = 0; sample < samples; sample++) {
      rates.push((1000 * dispatches * bytes) / (await read(dispatches)));
    }
    rates.sort((a, b) => a - b);
    return {
      bytes,
      dispatches,
      samples,
      medianBytesPerSecond: rates[Math.floor(samples / 2)]!,
      bestBytesPerSecond: rates[samples - 1]!,
    };
  } finally {
    data.destroy();
    found.destroy();
  }
}

/** Words without a pattern: zeros might be stored in less than their size. */
function fill(device: GPUDevice, buffer: GPUBuffer): void {
  const chunk = new Uint32Array(2 ** 20);
  let word = 1;
  for (let at = 0; at < chunk.length; at++) {
    word = (Math.imul(word, 1_664_525) + 1_013_904_223) | 0;
    chunk[at] = word;
  }
  for (let at = 0; at < buffer.size; at += chunk.byteLength) {
    device.queue.writeBuffer(buffer, at, chunk, 0, Math.min(chunk.length, (buffer.size - at) / 4));
  }
}

/** A function that reads the buffer so often, one dispatch after the other, and returns the time. */
async function readKernel(
  device: GPUDevice,
  data: GPUBuffer,
  found: GPUBuffer,
  groups: number,
): Promise<(times: number) => Promise<number>> {
  const module = device.createShaderModule({ label: "read", code: kernelSources["read"]! });
  const pipeline = await device.createComputePipelineAsync({
    label: "read",
    layout: "auto",
    compute: { module, entryPoint: "main" },
  });
  const bindGroup = device.createBindGroup({
    layout: pipeline.getBindGroupLayout(0),
    entries: [data, found].map((buffer, binding) => ({ binding, resource: { buffer } })),
  });
  await device.queue.onSubmittedWorkDone();
  return async (times) => {
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, bindGroup);
    for (let time = 0; time < times; time++) pass.dispatchWorkgroups(groups);
    pass.end();
    const start = systemClock.nowMs();
    device.queue.submit([encoder.finish()]);
    await device.queue.onSubmittedWorkDone();
    return systemClock.nowMs() - start;
  };
}
