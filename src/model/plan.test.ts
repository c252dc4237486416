import { expect, test } from "vitest";
import { pageId, slotId } from "../ids.ts";
import {
  depthsOf,
  drawPosition,
  type Plan,
  pathOf,
  planPass,
  type SegmentRequest,
  validatePlan,
} from "./plan.ts";

const limits = { rowsMax: 128, drawsMax: 8, slots: 4, pages: 16, vocabSize: 100 };

function request(slot: number, changes: Partial<SegmentRequest> = {}): SegmentRequest {
  return {
    ids: [1, 2, 3],
    start: 62,
    stateSlot: slotId(slot),
    nextSlot: slotId(slot),
    pages: [pageId(2 * slot), pageId(2 * slot + 1), pageId(15)],
    draw: "last",
    candidates: 1,
    ...changes,
  };
}

const valid = (): Plan => planPass([request(0), request(1, { draw: "none" }), request(2)]);

/** A valid plan with the first segment changed. */
function withSegment(changes: Partial<Plan["segments"][number]>): Plan {
  const plan = valid();
  const [first, ...rest] = plan.segments;
  return { ...plan, segments: [{ ...first!, ...changes }, ...rest] };
}

const withTree = (parents: readonly number[]): Plan => withSegment({ window: true, parents });

test("lays rows side by side, names only the pages that hold them, draws last rows", () => {
  const plan = valid();
  validatePlan(plan, limits);
  expect(plan.ids).toEqual([1, 2, 3, 1, 2, 3, 1, 2, 3]);
  expect(plan.segments.map((segment) => segment.firstRow)).toEqual([0, 3, 6]);
  expect(plan.segments[0]!.pages).toEqual([0, 1]);
  expect(plan.draws.map((draw) => draw.row)).toEqual([2, 8]);
  expect(planPass([request(0, { draw: "all" })]).draws).toHaveLength(3);
});

test("accepts moves and forks that nothing else touches", () => {
  validatePlan(planPass([request(0, { nextSlot: slotId(3) }), request(1)]), limits);
});

test("accepts windows beside chains, at most 16 rows of them", () => {
  const ids = new Array<number>(16).fill(1);
  const window = request(0, { ids, start: 50, window: true, draw: "all" });
  const limits = { rowsMax: 32, drawsMax: 32, slots: 4, pages: 16, vocabSize: 100 };
  const plan = planPass([request(1), window]);
  validatePlan(plan, limits);
  expect(plan.segments.map((segment) => segment.window)).toEqual([false, true]);
});

test("a tree's rows have their parents' positions and one more", () => {
  const parents = [-1, 0, 0, 2, 1, 3];
  const ids = [1, 2, 3, 4, 5, 6];
  const window = { start: 60, ids, window: true, parents, draw: "all" } as const;
  const plan = planPass([request(1), request(0, window)]);
  validatePlan(plan, limits);
  const tree = plan.segments[1]!;
  expect(tree.parents).toEqual(parents);
  expect(tree.pages).toEqual([0, 1]);
  expect(depthsOf(tree)).toEqual([0, 1, 1, 2, 2, 3]);
  expect(ids.map((_, row) => pathOf(tree, row))).toEqual([
    [0],
    [0, 1],
    [0, 2],
    [0, 2, 3],
    [0, 1, 4],
    [0, 2, 3, 5],
  ]);
  expect(plan.draws.map(({ row }) => drawPosition(plan, row))).toEqual([
    65, 61, 62, 62, 63, 63, 64,
  ]);
  const [chain] = plan.segments;
  expect(depthsOf(chain!)).toEqual([0, 1, 2]);
  expect(pathOf(chain!, 2)).toEqual([0, 1, 2]);
});

test("a chain's last row keeps its logits, and each of a window's", () => {
  const keeps = (changes: Partial<SegmentRequest>) =>
    planPass([request(0, { draw: "all", keepLogits: true, ...changes })]).draws.map(
      ({ keepLogits }) => keepLogits,
    );
  expect(keeps({})).toEqual([false, false, true]);
  expect(keeps({ window: true })).toEqual([true, true, true]);
  expect(keeps({ window: true, keepLogits: false })).toEqual([false, false, false]);
});

test("a block draws all its rows but the first", () => {
  const plan = planPass([request(0, { draw: "block" }), request(1, { draw: "block" })]);
  validatePlan(plan, limits);
  expect(plan.draws.map(({ row }) => row)).toEqual([1, 2, 4, 5]);
});

const refused: readonly (readonly [string, Plan, RegExp])[] = [
  ["no rows", { ids: [], segments: [], draws: [] }, /0 rows/],
  ["too many rows", planPass([request(0, { ids: new Array(129).fill(1) })]), /129 rows/],
  ["an id past the vocabulary", planPass([request(0, { ids: [100] })]), /id 100/],
  ["a negative id", planPass([request(0, { ids: [-1] })]), /id -1/],
  ["half an id", planPass([request(0, { ids: [1.5] })]), /id 1.5/],
  ["a gap between segments", withSegment({ rows: 2, pages: [pageId(0)] }), /gap/],
  ["an overlap of segments", withSegment({ rows: 4, pages: [pageId(0), pageId(1)] }), /gap/],
  [
    "rows without a segment",
    { ...valid(), segments: valid().segments.slice(0, 2) },
    /cover 6 of 9/,
  ],
  ["an empty segment", withSegment({ rows: 0 }), /without rows/],
  ["a negative start", withSegment({ start: -1 }), /start/],
  ["a slot that isn't there", withSegment({ nextSlot: slotId(4) }), /slot 4/],
  ["a missing page", withSegment({ pages: [pageId(0)] }), /1 pages/],
  ["a page twice", withSegment({ pages: [pageId(0), pageId(0)] }), /twice/],
  ["a page that isn't there", withSegment({ pages: [pageId(0), pageId(16)] }), /page 16/],
  [
    "a window of 17 rows",
    planPass([request(0, { ids: new Array(17).fill(1), start: 0, window: true })]),
    /window of 17 rows/,
  ],
  ["a window that moves", withSegment({ window: true, nextSlot: slotId(3) }), /moves slot 0 to 3/],
  ["a chain that is a tree", withSegment({ parents: [-1, 0, 0] }), /a chain with parents/],
  ["a row without a parent", withTree([-1, 0]), /2 parents of 3 rows/],
  ["a parent after its child", withTree([-1, 2, 0]), /row 1 of a window with parent 2/],
  ["a row that is its own parent", withTree([-1, 1, 0]), /row 1 of a window with parent 1/],
  ["a second root", withTree([-1, 0, -1]), /row 2 of a window with parent -1/],
  ["a root with a parent", withTree([0, 0, 1]), /row 0 of a window with parent 0/],
  ["half a parent", withTree([-1, 0, 0.5]), /row 2 of a window with parent 0.5/],
  ["a slot written twice", withSegment({ nextSlot: slotId(1) }), /slot 1 is written twice/],
  [
    "a slot written and read by another",
    planPass([request(0, { nextSlot: slotId(3) }), request(1, { nextSlot: slotId(0) })]),
    /slot 0 is written and read/,
  ],
  [
    "a fork beside its origin, which advances",
    planPass([request(0), request(0, { nextSlot: slotId(3), pages: request(3).pages })]),
    /slot 0 is written and read/,
  ],
  [
    "a page that another stream writes",
    planPass([request(0), request(1, { pages: [pageId(1), pageId(3)] })]),
    /page 1 is written/,
  ],
  [
    "a draw past the rows",
    { ...valid(), draws: [{ row: 9, candidates: 1, keepLogits: false }] },
    /row 9/,
  ],
  ["draws out of order", { ...valid(), draws: [...valid().draws].reverse() }, /row 2/],
  [
    "half a candidate",
    { ...valid(), draws: [{ row: 0, candidates: 0.5, keepLogits: false }] },
    /0.5 candidates/,
  ],
];

test.each(refused)("refuses %s", (_, plan, message) => {
  expect(() => validatePlan(plan, limits)).toThrow(message);
});

test("streams may share a page that no one writes", () => {
  const shared = pageId(9);
  const pages = (own: number) => [shared, pageId(own)];
  const plan = planPass([
    request(0, { start: 64, pages: pages(0) }),
    request(1, { start: 70, pages: pages(1) }),
  ]);
  validatePlan(plan, limits);
});
