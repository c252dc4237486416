import { CheckpointError } from "../errors.ts";

/** A file behind a URL, as its server described it. */
export interface HttpFile {
  readonly url: string;
  /** In bytes. */
  readonly size: number;
  /** Changes with the contents: a strong ETag, or else the time of the last change; empty without both. */
  readonly version: string;
  /** Whether the server answers requests for a part with that part. */
  readonly ranges: boolean;
}

/** Some servers answer with the page itself where a file is missing, unless this leaves HTML out. */
const accept = "application/octet-stream, application/json, text/plain";

/**
 * Asks for a file's first bytes, to learn what it is. Null where the server says that there is none.
 * @throws CheckpointError naming the URL
 */
export async function findFile(url: string): Promise<HttpFile | null> {
  // Not for one byte: Vite's server takes the range 0-0 for the whole file.
  const response = await request(url, "bytes=0-1");
  const version = versionOf(response);
  const { status, headers } = response;
  // What follows the headers is of no use, and may be the whole file.
  await response.body?.cancel();
  if (status === 404 || status === 410) return null;
  // Others do nevertheless (hosts of single-page apps), but no file of a checkpoint is HTML.
  const isPage = headers.get("content-type")?.startsWith("text/html") ?? false;
  if (isPage && (status === 200 || status === 206)) return null;
  if (status === 206) return { url, size: rangeOf(response, url).size, version, ranges: true };
  // No byte of an empty file can be had.
  if (status === 416 && headers.get("content-range") === "bytes */0") {
    return { url, size: 0, version, ranges: true };
  }
  if (status !== 200) throw unexpected(url, status);
  const length = headers.get("content-length");
  if (length === null || headers.has("content-encoding")) {
    throw new CheckpointError(url, "the server neither sends parts of it nor says how long it is");
  }
  return { url, size: Number(length), version, ranges: false };
}

/**
 * `length` bytes from `offset`.
 * @throws CheckpointError naming the URL, where fewer came, others, or those of a changed file
 */
export async function fetchPart(
  file: HttpFile,
  offset: number,
  length: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const { url, size } = file;
  const last = offset + length - 1;
  const response = await request(url, `bytes=${offset}-${last}`);
  if (response.status !== 206) {
    await response.body?.cancel();
    throw unexpected(url, response.status);
  }
  const range = rangeOf(response, url);
  checkVersion(file, response, range.size);
  if (range.first !== offset || range.last !== last) {
    await response.body?.cancel();
    const got = `${range.first} to ${range.last} of ${size}`;
    throw new CheckpointError(url, `bytes ${offset} to ${last} were asked for, ${got} came`);
  }
  return await body(response, url, length);
}

/** The whole file, of a server that knows no parts. @throws CheckpointError as `fetchPart` */
export async function fetchWhole(file: HttpFile): Promise<Uint8Array<ArrayBuffer>> {
  // It ignores the range, but with one, browsers ask for the bytes as they are, not compressed.
  const response = await request(file.url, "bytes=0-");
  if (response.status !== 200) {
    await response.body?.cancel();
    throw unexpected(file.url, response.status);
  }
  checkVersion(file, response, Number(response.headers.get("content-length")));
  return await body(response, file.url, file.size);
}

/** Past the browser's own cache: it would keep gigabytes twice, and answer with what has changed. */
async function request(url: string, range: string): Promise<Response> {
  try {
    return await fetch(url, { cache: "no-store", headers: { range, accept } });
  } catch (cause) {
    const why = "is its server there, and may this page read from it (CORS)?";
    throw new CheckpointError(url, `can't be fetched: ${why}`, cause);
  }
}

async function body(response: Response, url: string, length: number) {
  let bytes: Uint8Array<ArrayBuffer>;
  try {
    bytes = new Uint8Array(await response.arrayBuffer());
  } catch (cause) {
    throw new CheckpointError(url, `the connection broke before ${length} bytes had come`, cause);
  }
  if (bytes.length === length) return bytes;
  throw new CheckpointError(url, `${bytes.length} of ${length} bytes came`);
}

function rangeOf({ headers }: Response, url: string) {
  const text = headers.get("content-range");
  if (text === null) {
    throw new CheckpointError(
      url,
      "the server sent a part and no Content-Range that this page may read " +
        "(another origin must expose it: Access-Control-Expose-Headers)",
    );
  }
  const [, first, last, size] = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(text)?.map(Number) ?? [];
  if (size !== undefined) return { first, last, size };
  throw new CheckpointError(url, `the server sent Content-Range ${JSON.stringify(text)}`);
}

function versionOf({ headers }: Response): string {
  const tag = headers.get("etag");
  // Files of one weak tag may differ in their bytes.
  if (tag !== null && !tag.startsWith("W/")) return tag;
  return headers.get("last-modified") ?? "";
}

function checkVersion(file: HttpFile, response: Response, size: number): void {
  if (size === file.size && versionOf(response) === file.version) return;
  void response.body?.cancel();
  throw new CheckpointError(file.url, "has changed on the server while it was being read");
}

const unexpected = (url: string, status: number): CheckpointError =>
  new CheckpointError(url, `the server answered status ${status}`);
