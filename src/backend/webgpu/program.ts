import type { RowBuffer } from "../../model/forward.ts";
import { type DerivedSizes, derivedSizes, type ModelShape } from "../../model/shape.ts";
import type { Weights } from "../../weights/weights.ts";
import type { AttentionCut } from "./attention-cut.ts";
import type { DeviceMemory } from "./device-memory.ts";
import { type DeviceMatrix, type Synthesise, uploadMatrix } from "./matrices.ts";
import type { Kernel, KernelName, Pipelines } from "./pipelines.ts";
import type { PlaceOptions, Places } from "./places.ts";
import type { Defines } from "./preprocess.ts";
import type { InputName, RowArray } from "./row-arrays.ts";
import { synthesiser } from "./synthesise.ts";
import { type DeviceTiles, type TileMember, uploadTiles } from "./tiles.ts";

/** What a program is built for. */
export interface ProgramOptions extends PlaceOptions {
  /** Synthetic matrices are made on the device, with values of its own. */
  readonly synthetic: boolean;
}

/** Counts that a dispatch's size depends on. */
export interface PassCounts {
  readonly rows: number;
  readonly draws: number;
  readonly segments: number;
  /** The most candidates that a draw takes from the device. */
  readonly top: number;
  readonly attention: AttentionCut;
}

const smallestPass: PassCounts = {
  rows: 1,
  draws: 1,
  segments: 1,
  top: 1,
  attention: { blocks: [{ firstRow: 0, rows: 1 }], blockRows: 1, span: 1, units: 1, partials: 1 },
};

/** Counts with the smallest attention: where there is none, and where only their number matters. */
export const plainCounts = (rows: number, draws: number, segments: number): PassCounts => ({
  ...smallestPass,
  rows,
  draws,
  segments,
});

/** One dispatch of a pass. */
export interface Instruction {
  /** The kernel for a pass of that size. */
  kernel(counts: PassCounts): Kernel;
  readonly bindGroup: GPUBindGroup;
  /** Workgroups; a zero leaves the dispatch out. */
  size(counts: PassCounts): readonly [x: number, y: number, z: number];
}

/** What a kernel is bound to: a whole buffer, or one from an offset on. */
export type Bound = GPUBuffer | GPUBufferBinding;

export const bindingOf = ({ buffer, offset }: RowArray): GPUBufferBinding => ({
  buffer,
  offset: 4 * offset,
});

const floatBits = new DataView(new ArrayBuffer(4));

/** A float as a word of a kernel's parameters. */
export function floatWord(value: number): number {
  floatBits.setFloat32(0, value, true);
  return floatBits.getUint32(0, true);
}

/** The dispatches of a pass, and those that commit windows. */
export interface Program {
  readonly pass: readonly Instruction[];
  readonly keep: readonly Instruction[];
}

/** Bytes from one instruction's parameters to the next: the largest alignment that adapters ask. */
const parameterBytes = 256;

/**
 * Collects the dispatches of a pass, with bind groups made once. The families of steps (`steps-*.ts`)
 * push theirs; binding 0 of every kernel are its parameters, 1 is the pass, and a step's buffers
 * follow from 2 on.
 */
export class ProgramBuilder {
  readonly device: GPUDevice;
  readonly pipelines: Pipelines;
  readonly weights: Weights;
  readonly shape: ModelShape;
  readonly sizes: DerivedSizes;
  readonly places: Places;
  /** The shape's numbers, by the names that kernels use. */
  readonly defines: Defines;
  readonly options: ProgramOptions;
  /** What the next norm adds to the residual stream before it norms it. */
  pending: RowArray | null = null;
  readonly #pass: Instruction[] = [];
  readonly #keep: Instruction[] = [];
  readonly #memory: DeviceMemory;
  readonly #matrices = new Map<object, DeviceMatrix>();
  readonly #tiles = new Map<object, DeviceTiles>();
  readonly #parameters: GPUBuffer;
  #parametersUsed = 0;
  readonly #synthesise: Synthesise | null;

  private constructor(
    device: GPUDevice,
    memory: DeviceMemory,
    pipelines: Pipelines,
    options: ProgramOptions,
    places: Places,
    parameters: GPUBuffer,
  ) {
    this.device = device;
    this.#memory = memory;
    this.pipelines = pipelines;
    this.options = options;
    this.weights = options.weights;
    this.shape = options.weights.shape;
    this.sizes = derivedSizes(this.shape);
    this.places = places;
    this.#parameters = parameters;
    this.defines = {
      ...shapeDefines(this.shape),
      INPUT_F16: Number(options.arithmetic === "f16"),
    };
    this.#synthesise = options.synthetic ? synthesiser(device, memory) : null;
  }

  /** An empty program with room for the parameters of `instructionsMax` dispatches. */
  static async create(
    device: GPUDevice,
    memory: DeviceMemory,
    pipelines: Pipelines,
    options: ProgramOptions,
    places: Places,
    instructionsMax: number,
  ): Promise<ProgramBuilder> {
    const usage = GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST;
    const bytes = parameterBytes * instructionsMax;
    const parameters = await memory.create("parameters", bytes, usage);
    return new ProgramBuilder(device, memory, pipelines, options, places, parameters);
  }

  /** A dispatch of the kernel `name`, specialised by the shape's defines and these. */
  async add(
    name: KernelName,
    defines: Defines,
    buffers: readonly Bound[],
    parameters: readonly number[],
    size: Instruction["size"],
  ): Promise<void> {
    const kernel = await this.kernel(name, defines);
    this.push(buffers, parameters, () => kernel, size);
  }

  /** As `add`, to the dispatches that commit windows: the pass at binding 1 is `places.keeps`. */
  async addKeep(
    name: KernelName,
    defines: Defines,
    buffers: readonly Bound[],
    size: Instruction["size"],
  ): Promise<void> {
    const kernel = await this.kernel(name, defines);
    const bindGroup = this.#bindGroup(kernel, this.places.keeps, buffers, []);
    this.#keep.push({ kernel: () => kernel, bindGroup, size });
  }

  /** The kernel `name`, specialised by the shape's defines and these. */
  async kernel(name: KernelName, defines: Defines): Promise<Kernel> {
    return await this.pipelines.get(name, { ...this.defines, ...defines });
  }

  /** A kernel with a thread for each of `width` columns of each row. */
  async addRowWise(
    name: KernelName,
    defines: Defines,
    buffers: readonly Bound[],
    parameters: readonly number[],
    width: number,
  ): Promise<void> {
    await this.add(name, defines, buffers, parameters, ({ rows }) => [
      Math.ceil(width / 64),
      rows,
      1,
    ]);
  }

  /** A dispatch whose kernel depends on the pass; its variants share one layout. */
  push(
    buffers: readonly Bound[],
    parameters: readonly number[],
    kernelFor: Instruction["kernel"],
    size: Instruction["size"],
  ): void {
    const kernel = kernelFor(smallestPass);
    const bindGroup = this.#bindGroup(kernel, this.places.pass, buffers, parameters);
    this.#pass.push({ kernel: kernelFor, bindGroup, size });
  }

  get program(): Program {
    return { pass: this.#pass, keep: this.#keep };
  }

  #bindGroup(
    { layout }: Kernel,
    pass: GPUBuffer,
    buffers: readonly Bound[],
    parameters: readonly number[],
  ): GPUBindGroup {
    const offset = this.#parametersUsed;
    this.#parametersUsed += parameterBytes;
    const words = new Uint32Array(16);
    words.set(parameters);
    this.device.queue.writeBuffer(this.#parameters, offset, words);
    const resources: GPUBufferBinding[] = [
      { buffer: this.#parameters, offset, size: 64 },
      { buffer: pass },
      ...buffers.map((bound) => ("buffer" in bound ? bound : { buffer: bound })),
    ];
    const entries = resources.map((resource, binding) => ({ binding, resource }));
    return this.device.createBindGroup({ layout, entries });
  }

  /** The rows of a row buffer, or of a projection's input. */
  array(name: RowBuffer | InputName): RowArray {
    const { rows, inputs } = this.places.arrays;
    return inputs.get(name as InputName) ?? rows.get(name as RowBuffer)!;
  }

  buffer(name: RowBuffer | InputName): GPUBufferBinding {
    return bindingOf(this.array(name));
  }

  /** Floats from one row of a row buffer to the next. */
  stride(name: RowBuffer | InputName): number {
    return this.array(name).stride;
  }

  /** A tied head is the embedding's own matrix and is uploaded once. */
  async matrix(path: string): Promise<DeviceMatrix> {
    const matrix = this.weights.matrix(path);
    const known = this.#matrices.get(matrix);
    if (known) return known;
    const uploaded = await uploadMatrix(this.device, this.#memory, path, matrix, this.#synthesise);
    this.#matrices.set(matrix, uploaded);
    return uploaded;
  }

  /** Matrices of one form and input, side by side. */
  async tiles(label: string, members: readonly TileMember[]): Promise<DeviceTiles> {
    const { matrix } = members[0]!;
    const known = members.length === 1 ? this.#tiles.get(matrix) : undefined;
    if (known) return known;
    const { device } = this;
    const uploaded = await uploadTiles(device, this.#memory, label, members, this.#synthesise);
    if (members.length === 1) this.#tiles.set(matrix, uploaded);
    return uploaded;
  }

  async vector(path: string): Promise<GPUBuffer> {
    return await this.upload(path, await this.weights.vector(path));
  }

  async upload(label: string, values: Float32Array): Promise<GPUBuffer> {
    const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST;
    const buffer = await this.#memory.create(label, values.byteLength, usage);
    this.device.queue.writeBuffer(buffer, 0, Float32Array.from(values));
    return buffer;
  }
}

/** A shape's numbers, by the names that kernels use. */
export function shapeDefines(shape: ModelShape): Defines {
  return {
    PAGE_ROWS: 64,
    ROTARY_DIM: shape.rotaryDim,
    KEY_HEADS: shape.linearKeyHeads,
    VALUE_HEADS: shape.linearValueHeads,
    KEY_DIM: shape.linearKeyDim,
    VALUE_DIM: shape.linearValueDim,
    TAPS: shape.convTaps,
    HEADS: shape.headCount,
    KV_HEADS: shape.kvHeadCount,
    HEAD_DIM: shape.headDim,
  };
}
