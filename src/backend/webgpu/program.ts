import { forwardSteps, type RowBuffer, type Step } from "../../model/forward.ts";
import { type DerivedSizes, derivedSizes, type ModelShape } from "../../model/shape.ts";
import type { Weights } from "../../weights/weights.ts";
import { transposed } from "../arrays.ts";
import type { BackendOptions } from "../backend.ts";
import type { DeviceMemory } from "./device.ts";
import { type DeviceMatrix, type Synthesise, uploadMatrix } from "./matrices.ts";
import type { Kernel, KernelName, Pipelines } from "./pipelines.ts";
import type { Places } from "./places.ts";
import type { Defines } from "./preprocess.ts";
import { powerOfTwoDivisor } from "./support.ts";
import { synthesiser } from "./synthesise.ts";

/** Rows that one reading of the weights serves, and weight rows a lane group takes at a time. */
const rowVariants: readonly { readonly rows: number; readonly weightRows: number }[] = [
  { rows: 1, weightRows: 4 },
  { rows: 2, weightRows: 4 },
  { rows: 4, weightRows: 2 },
  { rows: 8, weightRows: 2 },
];

/** What a program is built for. */
export interface ProgramOptions extends BackendOptions {
  /** Synthetic matrices are made on the device, with values of its own. */
  readonly synthetic: boolean;
}

const projectThreads = 128;

/** Counts that a dispatch's size depends on. */
export interface PassCounts {
  readonly rows: number;
  readonly draws: number;
  readonly segments: number;
}

/** One dispatch of a pass. */
export interface Instruction {
  /** The kernel for a pass of that size. */
  kernel(counts: PassCounts): Kernel;
  readonly bindGroup: GPUBindGroup;
  /** Workgroups; a zero leaves the dispatch out. */
  size(counts: PassCounts): readonly [x: number, y: number, z: number];
}

const floatBits = new DataView(new ArrayBuffer(4));
function floatWord(value: number): number {
  floatBits.setFloat32(0, value, true);
  return floatBits.getUint32(0, true);
}

/** Bytes from one instruction's parameters to the next: the largest alignment that adapters ask. */
const parameterBytes = 256;

/** Turns the steps of the forward pass into dispatches with bind groups made once. */
export class ProgramBuilder {
  readonly #device: GPUDevice;
  readonly #memory: DeviceMemory;
  readonly #pipelines: Pipelines;
  readonly #weights: Weights;
  readonly #shape: ModelShape;
  readonly #sizes: DerivedSizes;
  readonly #places: Places;
  readonly #defines: Defines;
  readonly #matrices = new Map<object, DeviceMatrix>();
  readonly #parameters: GPUBuffer;
  readonly #instructions: Instruction[] = [];
  #parametersUsed = 0;
  readonly #synthesise: Synthesise | null;
  #tap = 0;

  private constructor(
    device: GPUDevice,
    memory: DeviceMemory,
    pipelines: Pipelines,
    options: ProgramOptions,
    places: Places,
    parameters: GPUBuffer,
  ) {
    this.#device = device;
    this.#memory = memory;
    this.#pipelines = pipelines;
    this.#weights = options.weights;
    this.#shape = options.weights.shape;
    this.#sizes = derivedSizes(this.#shape);
    this.#places = places;
    this.#parameters = parameters;
    this.#defines = shapeDefines(this.#shape);
    this.#synthesise = options.synthetic ? synthesiser(device) : null;
  }

  /** Uploads the weights, compiles the kernels and lays out the dispatches of a pass. */
  static async build(
    device: GPUDevice,
    memory: DeviceMemory,
    pipelines: Pipelines,
    options: ProgramOptions,
    places: Places,
  ): Promise<readonly Instruction[]> {
    const steps = forwardSteps(options.weights.shape, options.taps);
    // A step is one dispatch, or one a matrix part; 64 parts a step are more than any model has.
    const bytes = parameterBytes * (steps.length * 8 + 64);
    const usage = GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST;
    const parameters = await memory.create("parameters", bytes, usage);
    const builder = new ProgramBuilder(device, memory, pipelines, options, places, parameters);
    for (const [index, step] of steps.entries()) {
      await builder.#step(step);
      options.onProgress?.(index + 1, steps.length);
    }
    await builder.#argmax();
    return builder.#instructions;
  }

  async #step(step: Step): Promise<void> {
    switch (step.op) {
      case "embed":
        return await this.#embed(step.matrix);
      case "tap":
        return await this.#rowWise(
          "tap",
          [this.#buffer(step.input), this.#places.taps[this.#tap++]!],
          [this.#shape.hiddenSize, this.#stride(step.input)],
          this.#shape.hiddenSize,
        );
      case "norm":
        return await this.#norm(step);
      case "project":
        return await this.#project(step);
      case "conv":
        return await this.#conv(step.module, step.linearLayer);
      case "scan":
        return await this.#scan(step.linearLayer);
      case "gatedNorm":
        return await this.#gatedNorm(step.weight);
      case "rope":
        return await this.#rope(step.module, step.fullLayer);
      case "attend":
        return await this.#attend(step.fullLayer);
      case "swiglu":
        return await this.#swiglu();
      default:
        step satisfies never;
    }
  }

  async #embed(path: string): Promise<void> {
    const matrix = await this.#matrix(path);
    const { steps, groups, groupSize, cols, scaleBytes } = matrix;
    const stride = this.#stride("hidden");
    for (const part of matrix.parts) {
      await this.#add(
        "embed",
        { ...matrix.defines, SCALE_BYTES: scaleBytes },
        [part.codes, part.scales, this.#buffer("hidden")],
        [cols, steps, stride, groups, groupSize, part.firstRow, part.rows],
        ({ rows }) => [Math.ceil(cols / 64), rows, 1],
      );
    }
  }

  async #norm(step: Step & { op: "norm" }): Promise<void> {
    const draws = step.rows === "draws";
    await this.#add(
      "norm",
      {},
      [this.#buffer(step.input), await this.#vector(step.weight), this.#buffer(step.out)],
      [
        this.#shape.hiddenSize,
        this.#stride(step.input),
        this.#stride(step.out),
        floatWord(this.#shape.normEps),
        draws ? 1 : 0,
      ],
      (counts) => [draws ? counts.draws : counts.rows, 1, 1],
    );
  }

  async #project(step: Step & { op: "project" }): Promise<void> {
    const draws = step.rows === "draws";
    const input =
      step.input === "gate" ? this.#places.activated : this.#places.rows.get(step.input)!;
    for (const { matrix: path, out, accumulate } of step.projections) {
      const matrix = await this.#matrix(path);
      const { steps, groups, groupSize, scaleBytes, defines } = matrix;
      for (const part of matrix.parts) {
        const kernels = new Map<number, Kernel>();
        // Few weight rows leave the device idle, so several lane groups share each; fixed by the shape.
        const slices = matrix.rows <= 8192 && steps >= 4 ? 4 : 1;
        for (const { rows, weightRows } of rowVariants) {
          const variant = {
            ...this.#defines,
            ...defines,
            SCALE_BYTES: scaleBytes,
            ROWS: rows,
            W_ROWS: weightRows,
            THREADS: projectThreads,
            SLICES: slices,
            PARTIALS: rows * weightRows * projectThreads,
          };
          kernels.set(rows, await this.#pipelines.get("project", variant));
        }
        const line = 32768;
        const parameters = [
          part.rows,
          steps,
          input.stride / 4,
          this.#stride(out),
          accumulate ? 1 : 0,
          draws ? 1 : 0,
          groups,
          groupSize,
          part.firstRow,
          line,
        ];
        const variantFor = (rows: number) =>
          rowVariants.find((variant) => variant.rows >= rows) ?? rowVariants.at(-1)!;
        this.#push(
          [input.buffer, part.codes, part.scales, this.#buffer(out)],
          parameters,
          (counts) => kernels.get(variantFor(draws ? counts.draws : counts.rows).rows)!,
          (counts) => {
            const rows = draws ? counts.draws : counts.rows;
            if (rows === 0) return [0, 0, 0];
            const variant = variantFor(rows);
            const perGroup = (projectThreads / 32 / slices) * variant.weightRows;
            const groupsOfRows = Math.ceil(part.rows / perGroup);
            const x = Math.min(line, groupsOfRows);
            return [x, Math.ceil(rows / variant.rows), Math.ceil(groupsOfRows / line)];
          },
        );
      }
    }
  }

  async #conv(module: string, layer: number): Promise<void> {
    const { convTaps, linearKeyHeads, linearValueHeads } = this.#shape;
    const weights = transposed(await this.#weights.vector(`${module}.conv1d`), convTaps);
    const decay = await this.#weights.vector(`${module}.A_log`);
    const bias = await this.#weights.vector(`${module}.dt_bias`);
    const rates = Float32Array.from([...decay.map((value) => -Math.exp(value)), ...bias]);
    await this.#add(
      "conv",
      this.#defines,
      [
        this.#buffer("qkv"),
        await this.#upload(`${module}.conv1d`, weights),
        this.#places.histories[layer]!,
        this.#buffer("conv"),
        this.#buffer("b"),
        this.#buffer("a"),
        await this.#upload(`${module} rates`, rates),
        this.#buffer("gates"),
      ],
      [
        this.#stride("qkv"),
        this.#stride("conv"),
        this.#stride("b"),
        this.#stride("a"),
        this.#stride("gates"),
        0,
      ],
      ({ rows }) => [2 * linearKeyHeads + linearValueHeads, rows, 1],
    );
  }

  async #scan(layer: number): Promise<void> {
    const { linearKeyDim, linearValueDim, linearValueHeads } = this.#shape;
    const columns = powerOfTwoDivisor(linearValueDim, 32);
    const parts = powerOfTwoDivisor(linearKeyDim, 8);
    const defines = {
      ...this.#defines,
      COLUMNS: columns,
      PARTS: parts,
      PER_PART: linearKeyDim / parts,
      THREADS: columns * parts,
    };
    await this.#add(
      "scan",
      defines,
      [
        this.#buffer("conv"),
        this.#buffer("gates"),
        this.#places.states[layer]!,
        this.#buffer("delta"),
      ],
      [this.#stride("conv"), this.#stride("gates"), this.#stride("delta"), 0],
      ({ segments }) => [linearValueDim / columns, linearValueHeads, segments],
    );
    await this.#add(
      "history",
      this.#defines,
      [this.#buffer("qkv"), this.#places.histories[layer]!],
      [this.#stride("qkv"), 0],
      ({ segments }) => [Math.ceil(this.#sizes.convDim / 64), segments, 1],
    );
  }

  async #gatedNorm(weight: string): Promise<void> {
    await this.#add(
      "gated_norm",
      this.#defines,
      [this.#buffer("delta"), this.#buffer("z"), await this.#vector(weight), this.#buffer("mixed")],
      [
        this.#stride("delta"),
        this.#stride("z"),
        this.#stride("mixed"),
        floatWord(this.#shape.normEps),
      ],
      ({ rows }) => [this.#shape.linearValueHeads, rows, 1],
    );
  }

  async #rope(module: string, layer: number): Promise<void> {
    const norms = Float32Array.from([
      ...(await this.#weights.vector(`${module}.q_norm`)),
      ...(await this.#weights.vector(`${module}.k_norm`)),
    ]);
    await this.#add(
      "rope",
      this.#defines,
      [
        this.#buffer("queryGate"),
        this.#buffer("key"),
        this.#buffer("value"),
        await this.#upload(`${module} norms`, norms),
        this.#buffer("query"),
        this.#places.keys[layer]!,
        this.#places.values[layer]!,
      ],
      [
        this.#stride("queryGate"),
        this.#stride("key"),
        this.#stride("value"),
        this.#stride("query"),
        floatWord(this.#shape.normEps),
      ],
      ({ rows }) => [this.#shape.headCount + this.#shape.kvHeadCount, rows, 1],
    );
  }

  async #attend(layer: number): Promise<void> {
    await this.#add(
      "attend",
      { ...this.#defines, DIMS: Math.ceil(this.#shape.headDim / 64) },
      [
        this.#buffer("query"),
        this.#buffer("queryGate"),
        this.#places.keys[layer]!,
        this.#places.values[layer]!,
        this.#buffer("attended"),
      ],
      [this.#stride("query") / 4, this.#stride("queryGate"), this.#stride("attended")],
      ({ rows }) => [this.#shape.headCount, rows, 1],
    );
  }

  async #swiglu(): Promise<void> {
    const { activated } = this.#places;
    const width = this.#shape.intermediateSize;
    await this.#rowWise(
      "swiglu",
      [this.#buffer("gate"), this.#buffer("up"), activated.buffer],
      [width, this.#stride("gate"), this.#stride("up"), activated.stride],
      width,
    );
  }

  async #argmax(): Promise<void> {
    await this.#add(
      "argmax",
      {},
      [this.#buffer("logits"), this.#places.results],
      [this.#shape.vocabSize, this.#stride("logits")],
      ({ draws }) => [draws, 1, 1],
    );
  }

  /** A kernel with a thread for each of `width` columns of each row. */
  async #rowWise(
    name: KernelName,
    buffers: readonly GPUBuffer[],
    parameters: readonly number[],
    width: number,
  ): Promise<void> {
    await this.#add(name, {}, buffers, parameters, ({ rows }) => [Math.ceil(width / 64), rows, 1]);
  }

  async #add(
    name: KernelName,
    defines: Defines,
    buffers: readonly GPUBuffer[],
    parameters: readonly number[],
    size: Instruction["size"],
  ): Promise<void> {
    const kernel = await this.#pipelines.get(name, { ...this.#defines, ...defines });
    this.#push(buffers, parameters, () => kernel, size);
  }

  #push(
    buffers: readonly GPUBuffer[],
    parameters: readonly number[],
    kernelFor: Instruction["kernel"],
    size: Instruction["size"],
  ): void {
    const offset = this.#parametersUsed;
    this.#parametersUsed += parameterBytes;
    const words = new Uint32Array(16);
    words.set(parameters);
    this.#device.queue.writeBuffer(this.#parameters, offset, words);
    const resources: GPUBufferBinding[] = [
      { buffer: this.#parameters, offset, size: 64 },
      { buffer: this.#places.pass },
      ...buffers.map((buffer) => ({ buffer })),
    ];
    const bindGroup = this.#device.createBindGroup({
      layout: kernelFor({ rows: 1, draws: 1, segments: 1 }).layout,
      entries: resources.map((resource, binding) => ({ binding, resource })),
    });
    this.#instructions.push({ kernel: kernelFor, bindGroup, size });
  }

  #buffer(name: RowBuffer): GPUBuffer {
    return this.#places.rows.get(name)!.buffer;
  }

  #stride(name: RowBuffer): number {
    return this.#places.rows.get(name)!.stride;
  }

  /** A tied head is the embedding's own matrix and is uploaded once. */
  async #matrix(path: string): Promise<DeviceMatrix> {
    const matrix = this.#weights.matrix(path);
    const known = this.#matrices.get(matrix);
    if (known) return known;
    const uploaded = await uploadMatrix(this.#device, this.#memory, path, matrix, this.#synthesise);
    this.#matrices.set(matrix, uploaded);
    return uploaded;
  }

  async #vector(path: string): Promise<GPUBuffer> {
    return await this.#upload(path, await this.#weights.vector(path));
  }

  async #upload(label: string, values: Float32Array): Promise<GPUBuffer> {
    const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST;
    const buffer = await this.#memory.create(label, values.byteLength, usage);
    this.#device.queue.writeBuffer(buffer, 0, Float32Array.from(values));
    return buffer;
  }
}

function shapeDefines(shape: ModelShape): Defines {
  return {
    PAGE_ROWS: 64,
    ROTARY_DIM: shape.rotaryDim,
    KEY_HEADS: shape.linearKeyHeads,
    VALUE_HEADS: shape.linearValueHeads,
    KEY_DIM: shape.linearKeyDim,
    VALUE_DIM: shape.linearValueDim,
    TAPS: shape.convTaps,
    CHANNELS: derivedSizes(shape).convDim,
    HEADS: shape.headCount,
    KV_HEADS: shape.kvHeadCount,
    HEAD_DIM: shape.headDim,
  };
}
