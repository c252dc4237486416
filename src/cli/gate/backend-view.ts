import type { Backend } from "../../backend/backend.ts";
import { invariant } from "../../errors.ts";
import { changedBackend } from "./changed-backend.ts";

/** How much of a backend may be used. */
export interface ViewSizes {
  readonly slots: number;
  readonly pages: number;
}

/**
 * A backend with some of another's slots and pages, and with some verbs replaced. The other stays when it
 * is disposed of.
 */
export function viewOf(
  backend: Backend,
  { slots, pages }: ViewSizes,
  changes: Partial<Backend> = {},
): Backend {
  const { info } = backend;
  const fits = slots <= info.slots && pages <= info.pages;
  invariant(fits, `${slots} of ${info.slots} slots, ${pages} of ${info.pages} pages`);
  const kvBytes = (info.memory.kvBytes * pages) / info.pages;
  return changedBackend(backend, {
    info: { ...info, slots, pages, memory: { ...info.memory, kvBytes } },
    [Symbol.asyncDispose]: async () => {},
    ...changes,
  });
}
