import type { DeviceMemory } from "./device-memory.ts";
import { kernelSources } from "./kernels.gen.ts";
import type { Synthesise } from "./matrices.ts";

/** As fill.wgsl numbers them. */
const scaleForms = { bf16: 1, f16: 2, f32Split: 3 } as const;

/** Fills synthetic matrices with random codes of sensible size, by kernels/fill.wgsl. */
export function synthesiser(device: GPUDevice, memory: DeviceMemory): Synthesise {
  const module = device.createShaderModule({ label: "fill", code: kernelSources["fill"]! });
  const pipeline = device.createComputePipeline({
    layout: "auto",
    compute: { module, entryPoint: "main" },
  });
  let seed = 1;
  const fill = async (
    buffer: GPUBuffer,
    bytes: number,
    form: number,
    middle: number,
    scale: number,
  ) => {
    const words = new Uint32Array(16);
    words.set([bytes / 4, seed++ * 7919]);
    new Float32Array(words.buffer).set([middle, scale], 2);
    words[4] = form;
    const usage = GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST;
    const parameters = await memory.create("fill", 64, usage);
    device.queue.writeBuffer(parameters, 0, words);
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    const entries = [parameters, buffer].map((each, binding) => ({
      binding,
      resource: { buffer: each },
    }));
    const layout = pipeline.getBindGroupLayout(0);
    pass.setBindGroup(0, device.createBindGroup({ layout, entries }));
    pass.dispatchWorkgroups(Math.min(4096, Math.ceil(bytes / 1024)));
    pass.end();
    device.queue.submit([encoder.finish()]);
    return parameters;
  };
  return async (codes, scales, matrix, codeBytes, scaleBytes, form) => {
    const spread = Math.sqrt((4 ** matrix.bits - 1) / 12);
    const middle = (2 ** matrix.bits - 1) / 2;
    const scale = 1 / (spread * Math.sqrt(matrix.cols));
    const ofCodes = await fill(codes, codeBytes, 0, 0, 0);
    const ofScales = await fill(scales, scaleBytes, scaleForms[form], middle, scale);
    await device.queue.onSubmittedWorkDone();
    memory.drop(ofCodes);
    memory.drop(ofScales);
  };
}
