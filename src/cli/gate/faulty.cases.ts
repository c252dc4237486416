import type { Backend, BackendOptions } from "../../backend/backend.ts";
import type { GateOptions } from "./options.ts";

export type Opener = GateOptions["open"];

/** The backend with some verbs replaced: a planted fault. */
export function faulty(open: Opener, fault: (backend: Backend) => Partial<Backend>): Opener {
  return async (options: BackendOptions) => {
    const backend = await open(options);
    const changes = fault(backend);
    return new Proxy(backend, {
      get(target, name) {
        const changed = Reflect.get(changes, name);
        if (changed !== undefined) return changed;
        const value = Reflect.get(target, name);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  };
}
