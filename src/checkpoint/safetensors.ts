import { CheckpointError } from "../errors.ts";
import { safetensorsHeaderBytesMax, tensorsMax } from "../limits.ts";
import { asFields, parseJsonObject } from "./json.ts";
import { parseTensor, type TensorEntry } from "./safetensors-tensor.ts";
import type { ByteSource } from "./source.ts";

export interface SafetensorsHeader {
  /** Sorted by place in the file. */
  readonly tensors: readonly TensorEntry[];
  /** The length field and the JSON as they stand in the file. */
  readonly raw: Uint8Array;
}

/**
 * Reads and checks the header of a safetensors file; no tensor is read.
 *
 * The tensors must fill the file exactly: in range, no overlap, no hole, nothing after the last.
 *
 * @throws CheckpointError naming the file, the tensor and the numbers that disagree
 */
export async function readSafetensorsHeader(source: ByteSource): Promise<SafetensorsHeader> {
  const { name, size } = source;
  if (size < 8) {
    throw new CheckpointError(name, `file is ${size} bytes, a safetensors file is at least 8`);
  }
  const prefix = await source.read(0, 8);
  const length = new DataView(prefix.buffer, prefix.byteOffset, 8).getBigUint64(0, true);
  if (length > BigInt(size - 8)) {
    throw new CheckpointError(name, `header says ${length} bytes, file is ${size} bytes`);
  }
  if (length > BigInt(safetensorsHeaderBytesMax)) {
    throw new CheckpointError(
      name,
      `header says ${length} bytes, at most ${safetensorsHeaderBytesMax} are read`,
    );
  }
  const raw = await source.read(0, 8 + Number(length));
  return { tensors: parseSafetensorsHeader(name, raw.subarray(8), size), raw };
}

/**
 * The tensors of a header's JSON, sorted by place.
 *
 * @param header the JSON bytes, without the length field
 * @param fileBytes size of the whole file
 */
export function parseSafetensorsHeader(
  file: string,
  header: Uint8Array,
  fileBytes: number,
): readonly TensorEntry[] {
  if (header[0] !== 0x7b) throw new CheckpointError(file, "header does not start with {");
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(header);
  } catch (cause) {
    throw new CheckpointError(file, "header is not UTF-8", cause);
  }
  const fields = parseJsonObject(`${file}: header`, text);
  const metadata = fields.get("__metadata__");
  if (metadata !== undefined && asFields(metadata) === null) {
    throw new CheckpointError(file, "__metadata__ is not an object");
  }
  if (fields.size > tensorsMax) {
    throw new CheckpointError(file, `names ${fields.size} tensors, at most ${tensorsMax} are read`);
  }
  const dataStart = 8 + header.length;
  const tensors: TensorEntry[] = [];
  for (const [name, value] of fields) {
    if (name !== "__metadata__") tensors.push(parseTensor(file, name, value, dataStart, fileBytes));
  }
  tensors.sort((a, b) => a.offset - b.offset || a.bytes - b.bytes);
  checkFilled(file, tensors, dataStart, fileBytes);
  return tensors;
}

function checkFilled(
  file: string,
  tensors: readonly TensorEntry[],
  dataStart: number,
  fileBytes: number,
): void {
  let end = dataStart;
  let previous = "the header";
  for (const tensor of tensors) {
    if (tensor.offset !== end) {
      const fault = tensor.offset < end ? "overlaps" : "leaves a hole after";
      throw new CheckpointError(
        file,
        `tensor ${tensor.name} starts at byte ${tensor.offset} and ${fault} ${previous}, ` +
          `which ends at ${end}`,
      );
    }
    end += tensor.bytes;
    previous = tensor.name;
  }
  if (end !== fileBytes) {
    throw new CheckpointError(file, `tensors end at byte ${end}, file is ${fileBytes} bytes`);
  }
}
