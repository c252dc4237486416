import { CheckpointError } from "../errors.ts";
import { shown } from "../json.ts";
import { tensorDimsMax, tensorNameBytesMax } from "../limits.ts";
import { asFields } from "./json.ts";

/** One tensor of a safetensors file, as its checked header describes it. */
export interface TensorEntry {
  readonly name: string;
  /** As the file spells it: `BF16`, `U32`. */
  readonly dtype: string;
  readonly shape: readonly number[];
  /** From the start of the file, in bytes. */
  readonly offset: number;
  readonly bytes: number;
}

/** Bits of one element of every type that the format knows. */
export const dtypeBits: ReadonlyMap<string, number> = new Map([
  ["F4", 4],
  ["F6_E2M3", 6],
  ["F6_E3M2", 6],
  ["BOOL", 8],
  ["U8", 8],
  ["I8", 8],
  ["F8_E5M2", 8],
  ["F8_E4M3", 8],
  ["F8_E8M0", 8],
  ["I16", 16],
  ["U16", 16],
  ["F16", 16],
  ["BF16", 16],
  ["I32", 32],
  ["U32", 32],
  ["F32", 32],
  ["I64", 64],
  ["U64", 64],
  ["F64", 64],
  ["C64", 64],
]);

/** Checks one header entry on its own: type, shape, range, and that they agree. */
export function parseTensor(
  file: string,
  name: string,
  value: unknown,
  dataStart: number,
  fileBytes: number,
): TensorEntry {
  const fail = (detail: string): never => {
    throw new CheckpointError(file, `tensor ${name.slice(0, tensorNameBytesMax)}: ${detail}`);
  };
  if (new TextEncoder().encode(name).length > tensorNameBytesMax) {
    fail(`its name is longer than ${tensorNameBytesMax} bytes`);
  }
  const fields = asFields(value) ?? fail(`is ${shown(value)}, an object is needed`);
  const dtype = fields.get("dtype");
  const bits = typeof dtype === "string" ? dtypeBits.get(dtype) : undefined;
  if (typeof dtype !== "string" || bits === undefined) return fail(`unknown dtype ${shown(dtype)}`);
  const shape = fields.get("shape");
  if (!isSizes(shape) || shape.length > tensorDimsMax) return fail(`bad shape ${shown(shape)}`);
  const range = fields.get("data_offsets");
  if (!isSizes(range) || range.length !== 2) return fail(`bad data_offsets ${shown(range)}`);
  const [begin, end] = [range[0]!, range[1]!];
  if (begin > end) fail(`data_offsets ${shown(range)} run backwards`);
  if (dataStart + end > fileBytes) {
    fail(
      `ends at byte ${dataStart + end}, file is ${fileBytes} bytes: cut off, or the header lies`,
    );
  }
  const elements = product(shape);
  if (elements === null || elements * bits !== 8 * (end - begin)) {
    fail(`${dtype} ${shown(shape)} does not take the ${end - begin} bytes of its data_offsets`);
  }
  return { name, dtype, shape, offset: dataStart + begin, bytes: end - begin };
}

function isSizes(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((size) => Number.isSafeInteger(size) && size >= 0);
}

/** The number of elements; null when it is no exact integer even in bits. */
function product(shape: readonly number[]): number | null {
  let elements = 1;
  for (const size of shape) {
    elements *= size;
    if (elements * 64 > Number.MAX_SAFE_INTEGER) return null;
  }
  return elements;
}
