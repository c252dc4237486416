/**
 * Imported for what it does. Dawn asks its devices for news in every turn of the event loop, which takes a
 * whole core from a software GPU while that compiles or computes: in tests once a millisecond is enough.
 */
import { nextTask } from "../../clock.ts";

const patient = (ring: (...args: unknown[]) => void, ...args: unknown[]): void =>
  void nextTask().then(() => ring(...args));

globalThis.setImmediate = patient as typeof setImmediate;
