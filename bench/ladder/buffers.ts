/** What the rungs read and write. */
import { fillText } from "./kernels.ts";
import { type MatrixName, matrices, matrixNames, rungs } from "./rungs.ts";

interface Weights {
  readonly codes: GPUBuffer;
  readonly scales: GPUBuffer;
}

/**
 * Codes of a matrix's copies together: a model's weights lie far apart, which counts for the memory's address
 * translation, and no cache holds them.
 */
const codeBytes = 3e9;

/** Random words: their `keep` bits stay random, and `ones` are set. */
interface Form {
  readonly keep: number;
  readonly ones: number;
}

const anyWord: Form = { keep: 0xffffffff, ones: 0 };
/** A scale of about 2^-8 and a bias of about -2^-7, in f16. */
const scaleAndBias: Form = { keep: 0x03ff03ff, ones: 0xa0001c00 };
/** Two f16 of 0.5 … 1, of either sign. */
const values: Form = { keep: 0x83ff83ff, ones: 0x38003800 };
/** f32 of 2^-15 … 2^-14. */
const digitScale: Form = { keep: 0x007fffff, ones: 0x38000000 };

/** Rows of a tile of x and of its outputs. */
const tileRows = 8;

export class LadderBuffers {
  readonly copies: Readonly<Record<MatrixName, readonly Weights[]>>;
  /** A tile of rows, and more than any kernel reads past its end. */
  readonly input: GPUBuffer;
  readonly digitScales: GPUBuffer;
  readonly output: GPUBuffer;
  readonly #device: GPUDevice;
  readonly #fill: GPUComputePipeline;
  #seed = 1;

  constructor(device: GPUDevice) {
    this.#device = device;
    const module = device.createShaderModule({ code: fillText });
    this.#fill = device.createComputePipeline({ layout: "auto", compute: { module } });
    const copies = matrixNames.map((name) => [name, this.#weights(name)] as const);
    this.copies = Object.fromEntries(copies) as Record<MatrixName, Weights[]>;
    const inputs = Math.max(...matrixNames.map((name) => matrices[name].inputs));
    this.input = this.#filled((inputs + 1024) * tileRows * 2, values);
    this.digitScales = this.#filled((inputs / 64 + 16) * 8, digitScale);
    const floats = rungs.flatMap(({ parts }) =>
      matrixNames.map((name) => parts[name].slices * matrices[name].outputs * tileRows),
    );
    this.output = this.#filled(Math.max(...floats) * 4, anyWord);
  }

  #weights(name: MatrixName): readonly Weights[] {
    const { outputs, inputs } = matrices[name];
    const elements = outputs * inputs;
    return Array.from({ length: Math.ceil(codeBytes / (elements / 2)) }, () => ({
      // Room for scales among them, for the kernels that take them so.
      codes: this.#filled(elements / 2 + elements / 16, anyWord),
      scales: this.#filled(elements / 16, scaleAndBias),
    }));
  }

  #filled(bytes: number, { keep, ones }: Form): GPUBuffer {
    const device = this.#device;
    const buffer = device.createBuffer({ size: bytes, usage: GPUBufferUsage.STORAGE });
    const form = uniformOf(device, [this.#seed++ * 7919, keep, ones]);
    const entries = [form, buffer].map((bound, binding) => ({
      binding,
      resource: { buffer: bound },
    }));
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(this.#fill);
    pass.setBindGroup(
      0,
      device.createBindGroup({ layout: this.#fill.getBindGroupLayout(0), entries }),
    );
    pass.dispatchWorkgroups(4096);
    pass.end();
    device.queue.submit([encoder.finish()]);
    return buffer;
  }
}

/** A uniform buffer of up to four words. */
export function uniformOf(device: GPUDevice, words: readonly number[]): GPUBuffer {
  const usage = GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST;
  const buffer = device.createBuffer({ size: 16, usage });
  device.queue.writeBuffer(
    buffer,
    0,
    Uint32Array.from({ length: 4 }, (_, i) => words[i] ?? 0),
  );
  return buffer;
}
