import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A folder of its own, which is gone with all that is in it when it is disposed of. */
export async function temporaryFolder(): Promise<{ readonly path: string } & AsyncDisposable> {
  const path = await mkdtemp(join(tmpdir(), "deltafold-gate-"));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true }) };
}
