import type { Drawer } from "./preferences.ts";

/** Local storage as a test sees it. */
export class MemoryDrawer implements Drawer {
  readonly items: Map<string, string> = new Map();
  isFull = false;

  getItem(name: string): string | null {
    return this.items.get(name) ?? null;
  }

  setItem(name: string, value: string): void {
    if (this.isFull) throw new DOMException("full", "QuotaExceededError");
    this.items.set(name, value);
  }

  removeItem(name: string): void {
    this.items.delete(name);
  }
}
