import { invariant } from "../../errors.ts";
import type { DrafterShape } from "../../model/drafter-shape.ts";
import type { RowBuffer } from "../../model/forward.ts";
import { type DerivedSizes, derivedSizes, type ModelShape } from "../../model/shape.ts";
import { type StepTensors, stepTensors } from "../../weights/tensors.ts";
import type { Matrix } from "../../weights/weights.ts";
import type { AttentionCut } from "./attention-cut.ts";
import { bufferBytes } from "./device-memory.ts";
import { type DeviceMatrix, fillMatrix, type Synthesise } from "./matrices.ts";
import type { Kernel, KernelName, Pipelines } from "./pipelines.ts";
import type { PlaceOptions, Places } from "./places.ts";
import type { Defines } from "./preprocess.ts";
import type { InputName, RowArray } from "./row-arrays.ts";
import { type DeviceTiles, fillTiles, type TileMember } from "./tiles.ts";
import { parameterBytes, type WeightPlaces } from "./weight-places.ts";

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
  /** Of a pass with trees (`trees.ts`); else 0. */
  readonly scans: number;
  /** Of a keep: whether a path's rows lie where they don't stay. */
  readonly moves: boolean;
}

/** A pass of one row. */
export const smallestPass: PassCounts = {
  rows: 1,
  draws: 1,
  segments: 1,
  top: 1,
  attention: { blocks: [{ firstRow: 0, rows: 1 }], blockRows: 1, span: 1, units: 1, partials: 1 },
  scans: 0,
  moves: false,
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

/** The target's passes, those that commit windows, and a drafter's two kinds; empty without one. */
export type Section = "pass" | "keep" | "extend" | "draft";

/** The dispatches of each kind of pass. */
export type Program = Readonly<Record<Section, readonly Instruction[]>>;

/** What the next norm adds to the residual stream before it norms it. */
export interface Pending {
  readonly update: RowArray;
  /** The drafter's convolution that it goes through first. */
  readonly convolution: { readonly base: string; readonly side: 0 | 1 } | null;
}

/**
 * Collects the dispatches of passes, with bind groups made once. The families of steps (`steps-*.ts`)
 * push theirs; binding 0 of every kernel are its parameters, 1 is the pass, and a step's buffers
 * follow from 2 on.
 */
export class ProgramBuilder {
  readonly device: GPUDevice;
  readonly pipelines: Pipelines;
  readonly tensors: StepTensors;
  readonly shape: ModelShape;
  readonly drafter: DrafterShape | null;
  readonly sizes: DerivedSizes;
  readonly places: Places;
  readonly options: ProgramOptions;
  pending: Pending | null = null;
  /** The feature that the residual stream is, as soon as what is pending is added. */
  feature: number | null = null;
  /** What the drafter's latest sublayer made. */
  sublayer: RowArray | null = null;
  #section: Section = "pass";
  readonly #program: Record<Section, Instruction[]> = {
    pass: [],
    keep: [],
    extend: [],
    draft: [],
  };
  readonly #defines: Readonly<Record<"target" | "drafter", Defines>>;
  readonly #weights: WeightPlaces;
  /** Matrices that are filled, or the first of those that lie side by side. */
  readonly #filled = new Set<Matrix>();
  #parametersUsed = 0;
  readonly #synthesise: Synthesise | null;

  /** @param synthesise fills synthetic matrices; null: they are read */
  constructor(
    device: GPUDevice,
    pipelines: Pipelines,
    options: ProgramOptions,
    places: Places,
    weights: WeightPlaces,
    synthesise: Synthesise | null,
  ) {
    this.device = device;
    this.#weights = weights;
    this.#synthesise = synthesise;
    this.pipelines = pipelines;
    this.options = options;
    const drafter = options.drafter?.weights ?? null;
    this.tensors = stepTensors(options.weights, drafter);
    this.shape = options.weights.shape;
    this.drafter = drafter?.shape ?? null;
    this.sizes = derivedSizes(this.shape);
    this.places = places;
    const target = {
      ...shapeDefines(this.shape),
      INPUT_F16: Number(options.arithmetic === "f16"),
    };
    this.#defines = {
      target,
      drafter: { ...target, ...(drafter && drafterDefines(drafter.shape)) },
    };
  }

  /** What follows belongs to passes of this kind. */
  begin(section: Section): void {
    this.#section = section;
  }

  /** Numbers of the model whose steps are added, by the names that kernels use. */
  get defines(): Defines {
    return this.#defines[this.#drafts ? "drafter" : "target"];
  }

  /** What the norms of that model add to a mean of squares. */
  get normEps(): number {
    return this.#drafts ? this.drafter!.normEps : this.shape.normEps;
  }

  get #drafts(): boolean {
    return this.#section === "extend" || this.#section === "draft";
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

  /** As `add`, to the dispatches that commit windows. */
  async addKeep(
    name: KernelName,
    defines: Defines,
    buffers: readonly Bound[],
    parameters: readonly number[],
    size: Instruction["size"],
  ): Promise<void> {
    const kernel = await this.kernel(name, defines);
    const bindGroup = this.#bindGroup(kernel, "keep", buffers, parameters);
    this.#program.keep.push({ kernel: () => kernel, bindGroup, size });
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
    const bindGroup = this.#bindGroup(kernel, this.#section, buffers, parameters);
    this.#program[this.#section].push({ kernel: kernelFor, bindGroup, size });
  }

  get program(): Program {
    return this.#program;
  }

  #passOf(section: Section): GPUBuffer {
    const { pass, keeps, drafter } = this.places;
    if (section === "pass") return pass;
    return section === "keep" ? keeps : drafter![section];
  }

  #bindGroup(
    { layout }: Kernel,
    section: Section,
    buffers: readonly Bound[],
    parameters: readonly number[],
  ): GPUBindGroup {
    const offset = this.#parametersUsed;
    this.#parametersUsed += parameterBytes;
    const words = new Uint32Array(16);
    words.set(parameters);
    const { parameters: buffer } = this.#weights;
    this.device.queue.writeBuffer(buffer, offset, words);
    const resources: GPUBufferBinding[] = [
      { buffer, offset, size: 64 },
      { buffer: this.#passOf(section) },
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

  /** Filled the first time that it is asked for. */
  async matrix(path: string): Promise<DeviceMatrix> {
    const matrix = this.tensors.matrix(path);
    const placed = this.#weights.matrices.get(matrix)!;
    if (this.#isNew(matrix)) await fillMatrix(this.device, matrix, placed, this.#synthesise);
    return placed;
  }

  /** Matrices of one form and input, side by side. */
  async tiles(members: readonly TileMember[]): Promise<DeviceTiles> {
    const { matrix } = members[0]!;
    const placed = this.#weights.tiles.get(matrix)!;
    if (this.#isNew(matrix)) await fillTiles(this.device, members, placed, this.#synthesise);
    return placed;
  }

  #isNew(matrix: Matrix): boolean {
    if (this.#filled.has(matrix)) return false;
    this.#filled.add(matrix);
    return true;
  }

  async vector(path: string): Promise<GPUBuffer> {
    return this.upload(path, await this.tensors.vector(path));
  }

  /** Fills the buffer that was placed for a step's small tensors. */
  upload(label: string, values: Float32Array): GPUBuffer {
    const buffer = this.#weights.vectors.get(label)!;
    const fits = buffer.size === bufferBytes(values.byteLength);
    invariant(fits, `${label}: ${values.length} floats where ${buffer.size} bytes were placed`);
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

/** Those that a drafter has for itself. */
function drafterDefines({ headCount, kvHeadCount, headDim }: DrafterShape): Defines {
  return { ROTARY_DIM: headDim, HEADS: headCount, KV_HEADS: kvHeadCount, HEAD_DIM: headDim };
}
