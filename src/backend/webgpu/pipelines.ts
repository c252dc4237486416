import { BackendError, messageOf } from "../../errors.ts";
import { kernelSources } from "./kernels.gen.ts";
import { type Defines, preprocess } from "./preprocess.ts";

/** Bindings from 2 on of each kernel: r reads, w reads and writes. 0 are parameters, 1 is the pass. */
const kernelBindings = {
  project: "rrrw",
  project_few: "rrrw",
  project_tiles: "rrrw",
  norm: "wrwr",
  norm_feature: "wrwrw",
  norm_conv: "wrwrrr",
  embed: "rrw",
  embed_tiles: "rrw",
  gdn: "rrrrrwwww",
  gdn_keep: "rww",
  gdn_copy: "w",
  kv_move: "ww",
  feature_move: "w",
  gather: "rw",
  dynamic_conv: "rwrr",
  draft_attend: "rrrww",
  draft_merge: "rrw",
  swiglu: "rrw",
  tap: "rwr",
  rope: "rrrrwww",
  attend: "rrrww",
  merge: "rrrw",
  topk_slice: "rw",
  topk: "rrw",
} as const;

export type KernelName = keyof typeof kernelBindings;

export interface Kernel {
  readonly pipeline: GPUComputePipeline;
  readonly layout: GPUBindGroupLayout;
}

/** Compiles each variant of a kernel once. */
export class Pipelines {
  readonly #device: GPUDevice;
  readonly #layouts = new Map<string, GPUBindGroupLayout>();
  readonly #kernels = new Map<string, Promise<Kernel>>();

  constructor(device: GPUDevice) {
    this.#device = device;
  }

  /** @throws BackendError naming the kernel where it doesn't compile */
  get(name: KernelName, defines: Defines): Promise<Kernel> {
    const key = `${name} ${JSON.stringify(defines)}`;
    const known = this.#kernels.get(key);
    if (known) return known;
    // A model's numbers and its drafter's differ, and many kernels look at none that do.
    const code = preprocess(name, defines, kernelSources);
    const textKey = `${name}\n${code}`;
    const kernel = this.#kernels.get(textKey) ?? this.#compile(name, code);
    this.#kernels.set(key, kernel).set(textKey, kernel);
    return kernel;
  }

  async #compile(name: KernelName, code: string): Promise<Kernel> {
    const layout = this.#layout(kernelBindings[name]);
    // Its errors are told below, by the pipeline that can't be made of it.
    this.#device.pushErrorScope("validation");
    const module = this.#device.createShaderModule({ label: name, code });
    await this.#device.popErrorScope();
    try {
      const pipeline = await this.#device.createComputePipelineAsync({
        label: name,
        layout: this.#device.createPipelineLayout({ bindGroupLayouts: [layout] }),
        compute: { module, entryPoint: "main" },
      });
      return { pipeline, layout };
    } catch (cause) {
      const { messages } = await module.getCompilationInfo();
      const first = messages.find((message) => message.type === "error");
      const detail = first ? `line ${first.lineNum}: ${first.message}` : messageOf(cause);
      throw new BackendError(`The kernel ${name} does not compile: ${detail}`, cause);
    }
  }

  #layout(bindings: string): GPUBindGroupLayout {
    const known = this.#layouts.get(bindings);
    if (known) return known;
    const types: GPUBufferBindingType[] = ["uniform", "read-only-storage"];
    for (const binding of bindings) types.push(binding === "w" ? "storage" : "read-only-storage");
    const layout = this.#device.createBindGroupLayout({
      label: bindings,
      entries: types.map((type, binding) => ({
        binding,
        visibility: GPUShaderStage.COMPUTE,
        buffer: { type },
      })),
    });
    this.#layouts.set(bindings, layout);
    return layout;
  }
}
