import { pause } from "../../src/clock.ts";

const everyMs = 50;
/** Far beyond what anything here takes, so that a slow machine fails no test. */
const triesMost = 1200;

/** Resolves once `holds` does. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < triesMost; tries++) {
    if (await holds()) return;
    await pause(everyMs);
  }
  throw new Error(`waited in vain until ${what}`);
}
