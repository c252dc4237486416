import { createHash } from "node:crypto";
import { basename } from "node:path";
import { DeltafoldError, InputError } from "../errors.ts";
import { batchFileBytesMax, batchRequestsMax } from "../limits.ts";
import { type BatchRequest, parseBatchLine } from "./line.ts";
import { fileLines, lineBytesMax } from "./lines-node.ts";

/** A line that is left out. */
export interface BrokenLine {
  readonly line: number;
  readonly message: string;
}

export interface NumberedRequest extends BatchRequest {
  readonly line: number;
}

/** A batch's file, all of whose lines were looked at. */
export class BatchFile {
  readonly path: string;
  /** Named after the file's bytes: the same file is the same batch. */
  readonly id: string;
  readonly requests: number;
  readonly broken: readonly BrokenLine[];

  private constructor(path: string, id: string, requests: number, broken: readonly BrokenLine[]) {
    this.path = path;
    this.id = id;
    this.requests = requests;
    this.broken = broken;
  }

  get name(): string {
    return basename(this.path);
  }

  /** @throws InputError for a file that can't be read, is too large, or holds no request */
  static async open(path: string): Promise<BatchFile> {
    const hash = createHash("sha256");
    const broken: BrokenLine[] = [];
    let requests = 0;
    for await (const read of readLines(path, hash)) {
      if ("message" in read) broken.push(read);
      else requests++;
      if (requests + broken.length > batchRequestsMax) {
        throw new InputError(`${path} has more than ${batchRequestsMax} requests: split it.`);
      }
    }
    if (requests === 0) throw new InputError(`${path} holds no request${firstFault(broken)}`);
    return new BatchFile(path, idOf(hash), requests, broken);
  }

  /**
   * Reads the requests again.
   * @throws DeltafoldError where the file has changed meanwhile
   */
  async *read(): AsyncGenerator<NumberedRequest> {
    const hash = createHash("sha256");
    for await (const read of readLines(this.path, hash)) if ("body" in read) yield read;
    if (idOf(hash) === this.id) return;
    throw new DeltafoldError("batch_changed", `${this.path} has changed while it was read.`);
  }
}

const idOf = (hash: ReturnType<typeof createHash>): string =>
  `batch_${hash.digest("hex").slice(0, 32)}`;

const firstFault = ([first]: readonly BrokenLine[]): string =>
  first ? `. Line ${first.line}: ${first.message}.` : ".";

async function* readLines(
  path: string,
  hash: ReturnType<typeof createHash>,
): AsyncGenerator<NumberedRequest | BrokenLine> {
  const lineOf = new Map<string, number>();
  let bytes = 0;
  const lines = fileLines(path, (part) => {
    hash.update(part);
    bytes += part.length;
    if (bytes <= batchFileBytesMax) return;
    throw new InputError(`${path} has more than ${batchFileBytesMax} bytes: split it.`);
  });
  for await (const { number: line, text } of lines) {
    if (text?.trim() === "") continue;
    const read = readLine(line, text);
    const first = "body" in read ? lineOf.get(read.customId) : undefined;
    if (first !== undefined) yield { line, message: `its custom_id is that of line ${first}` };
    else yield read;
    if (first === undefined && "body" in read) lineOf.set(read.customId, line);
  }
}

function readLine(line: number, text: string | null): NumberedRequest | BrokenLine {
  if (text === null) {
    return { line, message: `it is longer than ${lineBytesMax} bytes, or not UTF-8` };
  }
  try {
    return { line, ...parseBatchLine(text) };
  } catch (error) {
    if (error instanceof InputError) return { line, message: error.message };
    throw error;
  }
}
