import type { Backend } from "../../backend/backend.ts";

/** The backend with some verbs, or its info, replaced. All else is its own. */
export function changedBackend(backend: Backend, changes: Partial<Backend>): Backend {
  return new Proxy(backend, {
    get(target, name) {
      const changed = Reflect.get(changes, name);
      if (changed !== undefined) return changed;
      const value = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
