/** Who made a file that others may find: a lock, or a download that is not whole. */
import { createHash, randomBytes } from "node:crypto";
import { hostname } from "node:os";

/** `deltafold-HOST-PID-RANDOM`; the host is hashed, as its name may be of any letters. */
const tagForm = /^deltafold-([0-9a-f]{8})-(\d+)-[0-9a-f]{8}$/;

const host = createHash("sha256").update(hostname()).digest("hex").slice(0, 8);
const own = new Set<string>();

/** A tag that nobody else has. While it isn't disposed of, this process is known to be at work under it. */
export class OwnerTag implements Disposable {
  readonly text: string = `deltafold-${host}-${process.pid}-${randomBytes(4).toString("hex")}`;

  constructor() {
    own.add(this.text);
  }

  [Symbol.dispose](): void {
    own.delete(this.text);
  }
}

/** The process of a tag; null where it is no tag. */
export function ownerProcess(tag: string): number | null {
  const pid = tagForm.exec(tag)?.[2];
  return pid === undefined ? null : Number(pid);
}

/** Whether the process of a tag has ended, as far as can be told: of other machines nothing can. */
export function hasEnded(tag: string): boolean {
  const [, where, pid] = tagForm.exec(tag) ?? [];
  if (where !== host) return false;
  // An earlier process may have had this one's id, as in containers, where it is 1.
  if (Number(pid) === process.pid) return !own.has(tag);
  try {
    process.kill(Number(pid), 0);
    return false;
  } catch (cause) {
    // EPERM: it is somebody else's process.
    return cause instanceof Error && "code" in cause && cause.code === "ESRCH";
  }
}
