import type { Backend, BackendOptions } from "../../backend/backend.ts";
import { changedBackend } from "./changed-backend.ts";
import type { GateOptions } from "./options.ts";

export type Opener = GateOptions["open"];

/** The backend with some verbs replaced: a planted fault. */
export function faulty(open: Opener, fault: (backend: Backend) => Partial<Backend>): Opener {
  return async (options: BackendOptions) => {
    const backend = await open(options);
    return changedBackend(backend, fault(backend));
  };
}
