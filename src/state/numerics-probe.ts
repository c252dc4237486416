import type { Backend } from "../backend/backend.ts";
import { pageId, slotId, type TokenId } from "../ids.ts";
import { pageRows } from "../limits.ts";
import { planPass } from "../model/plan.ts";
import { stateFingerprint } from "./fingerprint.ts";

const pages = [0, 1].map(pageId);
/** Into the second page, so that attention reads more than one. */
const probeRows = pageRows + 16;

/**
 * Names weights, kernels and numerics by what they make of a fixed prompt: states of two backends with one
 * probe may be exchanged. The backend must serve nobody yet.
 * @returns 16 hex digits; "none" where two pages aren't there
 */
export async function numericsProbe(backend: Backend): Promise<string> {
  const { rowsMax, shape } = backend.info;
  if (backend.info.pages < pages.length) return "none";
  const slot = slotId(0);
  const ids = probeIds(shape.vocabSize);
  backend.open(slot);
  try {
    for (let start = 0; start < probeRows; start += rowsMax) {
      const last = start + rowsMax >= probeRows;
      const rows = {
        ids: ids.slice(start, start + rowsMax),
        start,
        stateSlot: slot,
        nextSlot: slot,
        pages,
        draw: last ? "last" : "none",
        candidates: 1,
        keepLogits: last,
      } as const;
      await backend.read(backend.prefill(planPass([rows])));
    }
    return stateFingerprint(await backend.save(slot, pages, probeRows)).slice(0, 16);
  } finally {
    backend.release(slot);
  }
}

/** Spread over the whole vocabulary, by a linear congruential generator. */
function probeIds(vocabSize: number): TokenId[] {
  let state = 1;
  return Array.from({ length: probeRows }, () => {
    state = (state * 48_271) % 0x7fffffff;
    return state % vocabSize;
  });
}
