import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readFileSync,
  type Stats,
  statSync,
} from "node:fs";
import { InputError } from "../../errors.ts";
import { keyFileBytesMax } from "../../limits.ts";
import type { NamedKey } from "../../serve/keys.ts";

/** Rights of a file's group and of everybody. */
const othersRights = 0o077;
/** What a group may do with a file that isn't the reader's own. */
const groupReads = 0o040;

/**
 * The keys in a file, which nobody but its owner may read; where that is another user, such as root who
 * lays it there for this one, its group may too.
 * @throws InputError that says what is wrong with the file, or which line
 */
export function readKeyFile(path: string): NamedKey[] {
  const keys = parseKeys(readText(path), path);
  if (keys.length === 0) throw new InputError(`${path} holds no key: write one a line.`);
  return keys;
}

/** Whatever changes with a file's content or rights; alike while nothing has changed. */
export function fileStamp(path: string): string {
  try {
    const { dev, ino, mode, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true });
    return [dev, ino, mode, size, mtimeNs, ctimeNs].join();
  } catch (cause) {
    return codeOf(cause);
  }
}

function readText(path: string): string {
  const file = opened(path);
  try {
    const stats = fstatSync(file);
    if (!stats.isFile()) throw new InputError(`${path} is not a file.`);
    checkRights(path, stats);
    if (stats.size > keyFileBytesMax) {
      throw new InputError(`${path} has more than ${keyFileBytesMax} bytes.`);
    }
    return readFileSync(file, "utf8");
  } finally {
    closeSync(file);
  }
}

function opened(path: string): number {
  try {
    // A pipe would let everybody wait who opens it otherwise. Windows has no such flag.
    return openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  } catch (cause) {
    const code = codeOf(cause);
    throw new InputError(
      `${path} ${code === "ENOENT" ? "does not exist" : `can't be read: ${code}`}.`,
    );
  }
}

const codeOf = (cause: unknown): string => (cause as NodeJS.ErrnoException).code ?? String(cause);

function checkRights(path: string, { mode, uid }: Stats): void {
  const isOwn = uid === process.geteuid?.();
  const refused = isOwn ? othersRights : othersRights & ~groupReads;
  // Windows has no such rights.
  if (process.platform === "win32" || (mode & refused) === 0) return;
  const rights = (mode & 0o777).toString(8).padStart(4, "0");
  throw new InputError(
    `${path} holds keys, and its rights ${rights} let other users at it. Run: chmod 600 ${path}`,
  );
}

/** Lines `LABEL: KEY` or `KEY`; what begins with # is a comment. */
function parseKeys(text: string, path: string): NamedKey[] {
  const keys: NamedKey[] = [];
  for (const [index, line] of text
    .replace(/^\ufeff/, "")
    .split("\n")
    .entries()) {
    const trimmed = line.trim();
    if (trimmed === "" || trimmed.startsWith("#")) continue;
    const [, label, key] = /^(?:([\w.-]{1,64}):\s+)?(\S+)$/.exec(trimmed) ?? [];
    if (key === undefined) {
      throw new InputError(
        `Line ${index + 1} of ${path} must be KEY or LABEL: KEY, ` +
          "where LABEL has letters, digits, dots, dashes and underscores.",
      );
    }
    keys.push({ label: label ?? `line-${index + 1}`, key });
  }
  return keys;
}
