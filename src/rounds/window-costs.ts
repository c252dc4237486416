import type { Backend, PassHandle } from "../backend/backend.ts";
import { firstRows } from "../backend/windows.ts";
import type { Clock } from "../clock.ts";
import type { MeasuredCosts } from "../draft/cost-table.ts";
import { measureCosts } from "../draft/measure-costs.ts";
import { pageId, slotId } from "../ids.ts";
import { pageRows } from "../limits.ts";
import { planPass, type SegmentRequest } from "../model/plan.ts";

/** Tokens before the timed windows: attention has something to do, and there is room in three pages. */
const contextRows = 2 * pageRows;
const pages = [0, 1, 2].map(pageId);

/**
 * Times the parts of a round on a backend that serves nobody yet. A keep is done while the next pass
 * waits, so its time is in that of the windows, as it is when streams are served.
 * @returns null where the clock is too coarse to tell, or the context too short to try
 */
export async function windowCosts(backend: Backend, clock: Clock): Promise<MeasuredCosts | null> {
  const { drafter, rowsMax } = backend.info;
  if (backend.info.pages < pages.length) return null;
  const slot = slotId(0);
  const segment = (start: number, ids: readonly number[]): SegmentRequest => {
    return { ids, start, stateSlot: slot, nextSlot: slot, pages, draw: "none", candidates: 1 };
  };
  const zeros = (rows: number) => new Array<number>(rows).fill(0);
  let open: { readonly handle: PassHandle; readonly rows: number } | null = null;
  const keep = () => {
    if (open) backend.keep(open.handle, [firstRows(open.rows)]);
    open = null;
  };
  backend.open(slot);
  try {
    for (let row = 0; row < contextRows; row += rowsMax) {
      const rows = Math.min(rowsMax, contextRows - row);
      await backend.read(backend.prefill(planPass([segment(row, zeros(rows))])));
      if (drafter) backend.extend(planPass([segment(row, zeros(rows))]));
    }
    return await measureCosts(
      {
        verify: async (rows) => {
          const window = rows > 1;
          const request = { ...segment(contextRows, zeros(rows)), draw: "all", window } as const;
          const handle = backend.verify(planPass([request]));
          if (window) open = { handle, rows };
          await backend.read(handle);
        },
        keep: async () => keep(),
        draft:
          drafter &&
          (async () => {
            backend.extend(
              planPass([segment(contextRows - drafter.blockRows, zeros(drafter.blockRows))]),
            );
            const block = segment(contextRows, zeros(drafter.blockRows));
            const plan = planPass([{ ...block, draw: "block", candidates: drafter.candidates }]);
            await backend.read(backend.draft(plan));
          }),
      },
      clock,
    );
  } finally {
    backend.release(slot);
  }
}
