import { mkdir, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import type { HubTime } from "./client.ts";
import { hasEnded, OwnerTag, ownerProcess } from "./owner-node.ts";

const lookMs = 500;
/** How often the holder touches the lock. */
const touchMs = 10_000;
/** Looks at a lock that nobody touches, until its holder counts as gone: a minute. */
const looksMax = 120;
/** The same for one without a holder's tag: somebody was ended while making it. */
const looksAtNobodyMax = 2;

/**
 * Keeps processes from pulling the same at once. It saves work; that the cache stays right doesn't hang
 * on it, as every download has a file of its own.
 */
export class FileLock implements AsyncDisposable {
  readonly #path: string;
  readonly #tag: OwnerTag;
  readonly #time: HubTime;
  #cancel: () => void;

  private constructor(path: string, tag: OwnerTag, time: HubTime) {
    this.#path = path;
    this.#tag = tag;
    this.#time = time;
    this.#cancel = this.#touchLater();
  }

  /**
   * Waits until nobody has the lock.
   * @param onWait hears once whom it waits for: a process's id, or null where it isn't known
   */
  static async take(
    path: string,
    time: HubTime,
    signal: AbortSignal,
    onWait: (process: number | null) => void,
  ): Promise<FileLock> {
    await mkdir(dirname(path), { recursive: true });
    const tag = new OwnerTag();
    let last = "";
    let looks = 0;
    let told = false;
    while (!(await made(path, tag.text))) {
      const { holder, touchedMs } = await look(path);
      const seen = `${holder} ${touchedMs}`;
      looks = seen === last ? looks + 1 : 1;
      last = seen;
      const process = ownerProcess(holder);
      if (hasEnded(holder) || looks > (process === null ? looksAtNobodyMax : looksMax)) {
        await rm(path, { force: true });
        continue;
      }
      if (looks === looksAtNobodyMax && !told) onWait(process);
      told ||= looks === looksAtNobodyMax;
      await time.wait(lookMs, signal);
    }
    return new FileLock(path, tag, time);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#cancel();
    const { holder } = await look(this.#path);
    if (holder === this.#tag.text) await rm(this.#path, { force: true });
    this.#tag[Symbol.dispose]();
  }

  #touchLater(): () => void {
    return this.#time.setAlarm(touchMs, () => {
      const now = new Date();
      // Where somebody took it away, there is nothing to touch.
      utimes(this.#path, now, now).catch(() => {});
      this.#cancel = this.#touchLater();
    });
  }
}

async function made(path: string, tag: string): Promise<boolean> {
  try {
    await writeFile(path, tag, { flag: "wx" });
    return true;
  } catch (cause) {
    if (cause instanceof Error && "code" in cause && cause.code === "EEXIST") return false;
    throw cause;
  }
}

/** Who holds a lock, and since when it is untouched; empty and 0 where it has gone meanwhile. */
async function look(path: string): Promise<{ holder: string; touchedMs: number }> {
  const holder = await readFile(path, "utf8").catch(() => "");
  const touchedMs = await stat(path).then(
    ({ mtimeMs }) => mtimeMs,
    () => 0,
  );
  return { holder, touchedMs };
}
