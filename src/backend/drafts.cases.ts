import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import { expect, test } from "vitest";
import { NonFiniteLogitsError } from "../errors.ts";
import { pageId, slotId, type TokenId } from "../ids.ts";
import { type DrafterShape, tinyDrafterShape } from "../model/drafter-shape.ts";
import { pathOf, planPass, type SegmentRequest } from "../model/plan.ts";
import { tinyShape } from "../model/tiny-shape.ts";
import { randomWeights } from "../weights/random.ts";
import { randomDrafterWeights } from "../weights/random-drafter.ts";
import type { Backend, BackendOptions, PassResult } from "./backend.ts";
import { withNanToken } from "./broken.cases.ts";
import { feed, pagesOf, printOf, prompt, segment, sizes } from "./suite.cases.ts";

/** What an implementation gives the suite of drafts. */
export interface DraftsUnderTest {
  readonly name: string;
  open(options: BackendOptions): Promise<Backend>;
}

const target = tinyShape();
const weights = randomWeights(target, { seed: 3, bits: 4, groupSize: 32 });
const shapes: readonly DrafterShape[] = [
  tinyDrafterShape(target),
  tinyDrafterShape(target, { kind: "dflash", convolution: null, selector: null }),
];
const drafterOf = (shape: DrafterShape) =>
  randomDrafterWeights(shape, { seed: 5, bits: 4, groupSize: 32 });
const dflash2 = drafterOf(shapes[0]!);
const wide = { ...sizes, drawsMax: 48, weights, taps: [] };
/** Rows of context that the cases compare. */
const contextRows = 100;

/** Features of these rows, fed before, become context. */
function extend(backend: Backend, slot: number, start: number, end: number): void {
  const ids = new Array<TokenId>(end - start).fill(0);
  backend.extend(planPass([segment(slot, start, ids, { draw: "none" })]));
}

/** Feeds rows of the prompt, and gives the drafter each pass's at once. */
async function feedBoth(backend: Backend, slot: number, end: number, chunk: number) {
  for (let at = 0; at < end; at += chunk) {
    const rows = prompt.slice(at, Math.min(at + chunk, end));
    await backend.read(backend.prefill(planPass([segment(slot, at, rows)])));
    extend(backend, slot, at, at + rows.length);
  }
}

/** The drafter's keys and values of the first `rows` positions, as one word. */
async function contextOf(backend: Backend, slot: number, rows = contextRows): Promise<string> {
  const { draftKeys, draftValues } = await backend.save(slotId(slot), pagesOf(slot), rows);
  expect(draftKeys.some((value) => value !== 0)).toBe(true);
  const hash = sha256.create();
  for (const { buffer, byteOffset, byteLength } of [draftKeys, draftValues]) {
    hash.update(new Uint8Array(buffer, byteOffset, byteLength));
  }
  return bytesToHex(hash.digest());
}

interface Block {
  readonly slot: number;
  readonly start: number;
  readonly rows: number;
}

function blockOf(shape: DrafterShape, { slot, start, rows }: Block): SegmentRequest {
  const ids = [prompt[start]!, ...new Array<TokenId>(rows - 1).fill(shape.maskId)];
  return segment(slot, start, ids, { draw: "block", candidates: 0, keepLogits: false });
}

async function draft(backend: Backend, blocks: readonly Block[]): Promise<PassResult> {
  const { drafter } = backend.info;
  const plan = planPass(blocks.map((block) => blockOf(drafter!, block)));
  return await backend.read(backend.draft(plan));
}

/** What a block has for itself of a pass, behind `before` draws of other blocks. */
function partOf({ draws, selector }: PassResult, before: number, rows: number) {
  const rank = selector ? selector.length / draws.length : 0;
  return {
    draws: draws.slice(before, before + rows - 1),
    selector: selector?.slice(before * rank, (before + rows - 1) * rank) ?? null,
  };
}

/** A drafter's context and its blocks. */
export function draftCases(under: DraftsUnderTest): void {
  const { name } = under;

  for (const shape of shapes) {
    const drafter = { weights: drafterOf(shape) };
    const open = () => under.open({ ...wide, drafter });

    test(`${name}: a ${shape.kind}'s context is the same however it came`, async () => {
      await using backend = await open();
      for (const slot of [0, 1, 2]) backend.open(slotId(slot));
      await feedBoth(backend, 0, contextRows, 64);
      const whole = await contextOf(backend, 0);
      for (const chunk of [1, 7, 63]) {
        backend.open(slotId(1));
        await feedBoth(backend, 1, contextRows, chunk);
        expect(await contextOf(backend, 1), `chunks of ${chunk}`).toBe(whole);
      }
      // As late as features allow, then in cuts that aren't those of the passes.
      backend.open(slotId(2));
      await feed(backend, 2, prompt.slice(0, 80), 40);
      for (const [start, end] of [[0, 1] as const, [1, 52] as const, [52, 80] as const]) {
        extend(backend, 2, start, end);
      }
      await backend.read(backend.prefill(planPass([segment(2, 80, prompt.slice(80, 100))])));
      extend(backend, 2, 80, contextRows);
      expect(await contextOf(backend, 2), "late").toBe(whole);
    });

    test(`${name}: a ${shape.kind}'s context is that of kept rows alone`, async () => {
      await using backend = await open();
      for (const slot of [0, 1, 2]) backend.open(slotId(slot));
      await feedBoth(backend, 0, contextRows, 64);
      const whole = await contextOf(backend, 0);
      // Slot 1 goes by windows, slot 2 by trees; neither drafter hears of every round at once.
      const at = [0, 0, 0];
      const given = [0, 0, 0];
      for (let round = 0; at[1]! < contextRows || at[2]! < contextRows; round++) {
        const live = [1, 2].filter((slot) => at[slot]! < contextRows);
        const paths = live.map((slot) => {
          const kept = Math.min((round * 5 + slot) % 9, contextRows - at[slot]!);
          return slot === 1 ? Array.from({ length: kept }, (_, row) => row) : treePath(kept);
        });
        const handle = backend.verify(
          planPass(live.map((slot, index) => windowOf(slot, at[slot]!, paths[index]!))),
        );
        backend.keep(handle, paths);
        live.forEach((slot, index) => {
          at[slot]! += paths[index]!.length;
          if ((round + slot) % 3 > 0 && at[slot]! < contextRows) return;
          if (at[slot]! > given[slot]!) extend(backend, slot, given[slot]!, at[slot]!);
          given[slot] = at[slot]!;
        });
      }
      expect(await contextOf(backend, 1), "windows").toBe(whole);
      expect(await contextOf(backend, 2), "trees").toBe(whole);
    });

    test(`${name}: a ${shape.kind}'s block has the same draws in company`, async () => {
      await using backend = await open();
      for (const slot of [0, 1, 2]) {
        backend.open(slotId(slot));
        await feedBoth(backend, slot, [30, 100, 61][slot]!, 64);
      }
      const blocks: readonly Block[] = [
        { slot: 0, start: 30, rows: 8 },
        { slot: 1, start: 100, rows: 5 },
        // Over the edge of a page.
        { slot: 2, start: 61, rows: 7 },
      ];
      const alone = [];
      for (const block of blocks) alone.push(await draft(backend, [block]));
      expect(alone[0]!.draws).toHaveLength(7);
      const rank = shape.selector?.rank;
      expect(alone[0]!.selector?.length).toBe(rank && 7 * rank);
      for (const order of [
        [0, 1, 2],
        [2, 1, 0],
        [1, 0],
        [2, 1],
      ]) {
        const result = await draft(
          backend,
          order.map((index) => blocks[index]!),
        );
        let before = 0;
        for (const index of order) {
          const { rows } = blocks[index]!;
          const { draws, selector } = alone[index]!;
          expect(partOf(result, before, rows), `${index} of ${order}`).toEqual({ draws, selector });
          before += rows - 1;
        }
        expect(result.draws).toHaveLength(before);
      }
    });
  }

  const open = (changes: Partial<BackendOptions> = {}) =>
    under.open({ ...wide, drafter: { weights: dflash2 }, ...changes });

  test(`${name}: streams extend their contexts together`, async () => {
    await using backend = await open();
    const ends = [40, 20, 3];
    const alone: string[] = [];
    for (const [slot, end] of ends.entries()) {
      backend.open(slotId(slot));
      await feedBoth(backend, slot, end, 64);
      alone.push(await contextOf(backend, slot, end));
      backend.open(slotId(slot));
      await feed(backend, slot, prompt.slice(0, end), 64);
      // The pages hold other keys until the context comes again.
      await draft(backend, [{ slot, start: 0, rows: 8 }]);
    }
    const parts = [2, 0, 1].map((slot) =>
      segment(slot, 0, new Array<TokenId>(ends[slot]!).fill(0), { draw: "none" }),
    );
    backend.extend(planPass(parts));
    for (const [slot, end] of ends.entries()) {
      expect(await contextOf(backend, slot, end), `slot ${slot}`).toBe(alone[slot]);
    }
  });

  test(`${name}: drafting changes no pass, no state and no context`, async () => {
    const ids = prompt.slice(70, 90);
    const run = async (drafts: boolean) => {
      await using backend = await open();
      backend.open(slotId(0));
      await feedBoth(backend, 0, 70, 64);
      const passes: PassResult[] = [];
      for (const [index, id] of ids.entries()) {
        const start = 70 + index;
        const rows = 2 + (index % 7);
        if (drafts) {
          const first = await draft(backend, [{ slot: 0, start, rows }]);
          expect(await draft(backend, [{ slot: 0, start, rows }])).toEqual(first);
        }
        const plan = planPass([segment(0, start, [id], { candidates: 0 })]);
        passes.push(await backend.read(backend.verify(plan)));
        extend(backend, 0, start, start + 1);
      }
      expect(passes.every(({ selector }) => selector === null)).toBe(true);
      expect(backend.info.drafter).toEqual(dflash2.shape);
      return [passes, await printOf(backend, 0, 90), await contextOf(backend, 0, 90)];
    };
    const plain = await run(false);
    expect(await run(true)).toEqual(plain);
    await using without = await open({ drafter: null });
    without.open(slotId(0));
    expect(await feed(without, 0, prompt.slice(0, 90), 64)).toBe(plain[1]);
    const { draftKeys, draftValues } = await without.save(slotId(0), pagesOf(0), 90);
    expect([draftKeys.length, draftValues.length]).toEqual([0, 0]);
    expect(without.info.drafter).toBeNull();
  });

  test(`${name}: a restored snapshot brings its context`, async () => {
    await using backend = await open();
    backend.open(slotId(0));
    await feedBoth(backend, 0, 90, 64);
    const snapshot = await backend.save(slotId(0), pagesOf(0), 90);
    const original = await draft(backend, [{ slot: 0, start: 90, rows: 8 }]);
    backend.open(slotId(2));
    backend.restore(slotId(2), pagesOf(2), snapshot);
    expect(await backend.save(slotId(2), pagesOf(2), 90)).toEqual(snapshot);
    expect(await draft(backend, [{ slot: 2, start: 90, rows: 8 }])).toEqual(original);
    // Rows fed after it extend the context as they do the original's.
    for (const slot of [0, 2]) {
      await backend.read(backend.prefill(planPass([segment(slot, 90, prompt.slice(90, 100))])));
      extend(backend, slot, 90, contextRows);
    }
    expect(await contextOf(backend, 2)).toBe(await contextOf(backend, 0));
    const short = { ...snapshot, draftKeys: snapshot.draftKeys.slice(1) };
    expect(() => backend.restore(slotId(2), pagesOf(2), short)).toThrow(/floats of draftKeys/);
  });

  test(`${name}: a fork has the context of its pages, and extends it by what it is fed`, async () => {
    await using backend = await open();
    for (const slot of [0, 1, 2]) backend.open(slotId(slot));
    await feedBoth(backend, 2, contextRows, 64);
    // Features that the fork's slot has from before.
    await feed(backend, 1, prompt.slice(40, 120), 40);
    await feedBoth(backend, 0, 70, 64);
    const [shared, origin] = pagesOf(0);
    const [, copy] = pagesOf(1);
    backend.copyPage(origin!, copy!);
    using held = await backend.hold(slotId(0));
    backend.resume(slotId(1), held);
    const pages = [shared!, copy!];
    const saved = await backend.save(slotId(0), pagesOf(0), 70);
    expect(await backend.save(held, pages, 70)).toEqual({ ...saved, logits: null });
    // The origin goes its own way in the page that was copied.
    const others = prompt.slice(0, 30);
    await backend.read(backend.prefill(planPass([segment(0, 70, others)])));
    extend(backend, 0, 70, contextRows);
    const rows = prompt.slice(70, contextRows);
    await backend.read(backend.prefill(planPass([segment(1, 70, rows, { pages })])));
    const nothing = rows.map(() => 0);
    backend.extend(planPass([segment(1, 70, nothing, { draw: "none", pages })]));
    const whole = await backend.save(slotId(2), pagesOf(2), contextRows);
    expect(await backend.save(slotId(1), pages, contextRows)).toEqual(whole);
  });

  test.each([true, false])(
    `${name}: a row sees what its layer's window and causality (%s) show`,
    async (causal) => {
      const window = 10;
      // Of one layer without convolutions, rows meet in its attention alone.
      const shape = { ...shapes[1]!, layers: [{ window, causal }] };
      await using backend = await open({ drafter: { weights: drafterOf(shape) } });
      backend.open(slotId(0));
      const start = 70;
      await feedBoth(backend, 0, start, 64);
      const snapshot = await backend.save(slotId(0), pagesOf(0), start);
      const drawsOf = async (ids: readonly TokenId[]) => {
        const block = segment(0, start, ids, { draw: "block", candidates: 0, keepLogits: false });
        return (await backend.read(backend.draft(planPass([block])))).draws;
      };
      const ids = [40, 41, 42, 43, 44, 45, 46, 47];
      const drawn = [1, 2, 3, 4, 5, 6, 7];
      const plain = await drawsOf(ids);
      /** Rows of the block whose draws are others than they were. */
      const changed = (draws: PassResult["draws"]) => {
        const words = [draws, plain].map((all) => all.map((draw) => JSON.stringify(draw)));
        return drawn.filter((row) => words[0]![row - 1] !== words[1]![row - 1]);
      };
      for (const place of [0, 60, 61, 63, 64, 67, 68, 69]) {
        const draftValues = snapshot.draftValues.slice();
        const width = draftValues.length / start;
        draftValues.fill(3, place * width, (place + 1) * width);
        backend.restore(slotId(0), pagesOf(0), { ...snapshot, draftValues });
        const seen = drawn.filter((row) => start + row - place < window);
        expect(changed(await drawsOf(ids)), `place ${place}`).toEqual(seen);
      }
      backend.restore(slotId(0), pagesOf(0), snapshot);
      for (const row of [0, 3, 7]) {
        const others = ids.map((id, at) => (at === row ? 200 : id));
        const seen = drawn.filter((at) => !causal || at >= row);
        expect(changed(await drawsOf(others)), `row ${row}`).toEqual(seen);
      }
    },
  );

  test(`${name}: a vocabulary leaves the first tokens alone to choose from`, async () => {
    const vocabulary = 205;
    const rows: PassResult[] = [];
    for (const drafter of [{ weights: dflash2 }, { weights: dflash2, vocabulary }]) {
      await using backend = await open({ drafter });
      backend.open(slotId(0));
      await feedBoth(backend, 0, 33, 64);
      rows.push(await draft(backend, [{ slot: 0, start: 33, rows: 8 }]));
    }
    const [whole, some] = rows;
    expect(some!.selector).toEqual(whole!.selector);
    whole!.draws.forEach((draw, index) => {
      const fewer = some!.draws[index]!;
      if (draw instanceof Error || fewer instanceof Error) throw new Error("not finite");
      const places = [...draw.ids.keys()].filter((at) => draw.ids[at]! < vocabulary);
      expect([...fewer.ids]).toEqual(places.map((at) => draw.ids[at]));
      expect([...fewer.logits]).toEqual(places.map((at) => draw.logits[at]));
    });
  });

  test(`${name}: a block that isn't finite fails alone`, async () => {
    await using backend = await open({ weights: withNanToken(weights) });
    for (const slot of [0, 1]) {
      backend.open(slotId(slot));
      await feedBoth(backend, slot, 4, 4);
    }
    const blocks = [
      segment(0, 4, [7, 299, 299], { draw: "block", candidates: 16, keepLogits: false }),
      segment(1, 4, [8, 299, 299], { draw: "block", candidates: 16, keepLogits: false }),
    ];
    const { draws } = await backend.read(backend.draft(planPass(blocks)));
    expect(draws).toHaveLength(4);
    expect(draws[0]).toEqual(new NonFiniteLogitsError(5));
    expect(draws[1]).toEqual(new NonFiniteLogitsError(6));
    expect(draws.slice(2).some((draw) => draw instanceof Error)).toBe(false);
  });

  test(`${name}: what isn't a context or a block is refused`, async () => {
    await using backend = await open();
    backend.open(slotId(0));
    backend.open(slotId(1));
    await feedBoth(backend, 0, 20, 64);
    const none = { draw: "none" } as const;
    const extending = (changes: Partial<SegmentRequest>) => () =>
      backend.extend(planPass([segment(0, 10, [0, 0], { ...none, ...changes })]));
    expect(extending({ draw: "last" })).toThrow(/an extend with 1 draws/);
    expect(extending({ window: true })).toThrow(/no chain of its own/);
    expect(extending({ nextSlot: slotId(1) })).toThrow(/no chain of its own/);
    expect(extending({ pages: [pageId(12)] })).toThrow(/page 12/);
    const block = { draw: "block", keepLogits: false } as const;
    const drafting = (rows: number, changes: Partial<SegmentRequest> = {}) => {
      const ids = new Array<TokenId>(rows).fill(1);
      return () => backend.draft(planPass([segment(0, 20, ids, { ...block, ...changes })]));
    };
    expect(drafting(9)).toThrow(/a block of 9 rows \(at most 8\)/);
    expect(drafting(4, { draw: "all" })).toThrow(/draw of row 0/);
    expect(drafting(4, { keepLogits: true })).toThrow(/row 3 that keeps its logits/);
    expect(drafting(4, { window: true })).toThrow(/no chain of its own/);
    const window = segment(0, 20, [1, 2], { window: true, keepLogits: false });
    const open0 = backend.verify(planPass([window]));
    expect(drafting(4)).toThrow(/slot 0 has a window/);
    expect(extending({})).toThrow(/slot 0 has a window/);
    backend.keep(open0, [[0]]);
    const keeping = segment(1, 0, [1, 2], { window: true, keepLogits: true });
    const open1 = backend.verify(planPass([keeping]));
    expect(drafting(4)).toThrow(/keeps logits/);
    backend.keep(open1, [[0]]);
    await backend.read(drafting(4)());
    await using without = await open({ drafter: null });
    without.open(slotId(0));
    const rows = planPass([segment(0, 0, [0], none)]);
    expect(() => without.extend(rows)).toThrow(/extend without a drafter/);
    expect(() => without.draft(rows)).toThrow(/draft without a drafter/);
  });
}

/** A window with the prompt's rows on a path, and other tokens on the rest of its 16. */
function windowOf(slot: number, start: number, path: readonly number[]): SegmentRequest {
  const ids = Array.from({ length: 16 }, (_, row) => {
    const depth = path.indexOf(row);
    return depth < 0 ? (row * 41 + start) % 300 : prompt[start + depth]!;
  });
  const parents = slot === 1 ? null : treeParents;
  return segment(slot, start, ids, { draw: "none", window: true, parents });
}

/** Two branches, whose rows take turns. */
const treeParents: readonly number[] = [-1, 0, ...Array.from({ length: 14 }, (_, row) => row)];

/** The first rows of the second branch. */
function treePath(rows: number): readonly number[] {
  return pathOf({ parents: treeParents }, 14).slice(0, rows);
}
