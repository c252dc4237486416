import { PassingFault, RangeFault } from "./faults.ts";
import type { HubFile } from "./listing.ts";

/** A file's bytes from `start` on, as they come. */
export interface FileBody {
  readonly start: number;
  readonly pieces: AsyncIterable<Uint8Array>;
}

/**
 * Where in the file an answer's bytes begin: at `offset`, or at 0 where the server knows no parts.
 * @throws PassingFault where its headers don't fit the file, RangeFault where they don't fit the offset
 */
export function startOf({ status, headers }: Response, { size }: HubFile, offset: number): number {
  const isPacked = (headers.get("content-encoding") ?? "identity") !== "identity";
  if (status === 200) {
    // The length of what is packed says nothing; the digest will.
    const length = isPacked ? null : headers.get("content-length");
    if (length === null || Number(length) === size) return 0;
    throw new PassingFault(`it should be ${size} bytes, and the answer has ${length}`);
  }
  const range = headers.get("content-range");
  const [, first, total] = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(range ?? "") ?? [];
  const fits = Number(first) === offset && (total === "*" || Number(total) === size);
  if (fits && !isPacked) return offset;
  const came = isPacked ? "packed ones" : (range ?? "others");
  throw new RangeFault(`bytes from ${offset} of ${size} were asked for, and ${came} came`);
}

/** All of it as UTF-8; null where it is over `bytesMax`. */
export async function textOf(
  pieces: AsyncIterable<Uint8Array>,
  bytesMax: number,
): Promise<string | null> {
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for await (const piece of pieces) {
    bytes += piece.length;
    if (bytes > bytesMax) return null;
    text += decoder.decode(piece, { stream: true });
  }
  return text + decoder.decode();
}
