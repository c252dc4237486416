import { expect, test } from "vitest";
import type { TokenId } from "./ids.ts";
import { ReplyConstraint, type ReplyForm } from "./reply-constraint.ts";
import {
  allTokensBut,
  anythingAhead,
  hasToken,
  type LookAhead,
  type TokenSet,
} from "./sampling/constraint.ts";

const [end, closeA, closeB, gap] = [9, 100, 101, 50];
const goesOn = allTokensBut([3], 128);
const block = {
  closingId: end,
  callId: null,
  closing: [closeA, end, closeB],
  between: [gap],
  goesOn,
};
const set = Int32Array.of(6);

class Form implements ReplyForm {
  readonly seen: TokenId[] = [];
  /** Tokens that were said to be left, each time. */
  readonly left: number[] = [];

  forced(tokensLeft: number): TokenId | null {
    return tokensLeft === 1 ? 3 : null;
  }

  allowed(tokensLeft: number): Int32Array {
    this.left.push(tokensLeft);
    return set;
  }

  commit(id: TokenId): void {
    this.seen.push(id);
  }

  ahead(): LookAhead {
    return sevens;
  }
}

const sevens: LookAhead = { after: (id) => (id === 7 ? sevens : null) };

/** How many of some drafts could be drawn one after the other. */
function drawable(constraint: ReplyConstraint, drafts: readonly TokenId[]): number {
  let place: LookAhead | null = constraint.ahead();
  for (const [at, id] of drafts.entries()) {
    place = place.after(id);
    if (!place) return at;
  }
  return drafts.length;
}

/**
 * Commits what is forced, and otherwise what is wished for; says what was forced and allowed.
 * @param count tokens of the reply; unless given, it ends with the last wish
 */
function walk(constraint: ReplyConstraint, wishes: readonly TokenId[], count = 0) {
  const reply: TokenId[] = [];
  const forced: TokenId[] = [];
  const allowed: (TokenSet | null)[] = [];
  let next = 0;
  while (next < wishes.length || reply.length < count) {
    const only = constraint.forced();
    if (only !== null) forced.push(only);
    else allowed.push(constraint.allowed());
    const id = only ?? wishes[next++]!;
    constraint.commit(id);
    reply.push(id);
  }
  return { reply, forced, allowed };
}

test("a think block is closed behind its budget, once", () => {
  const constraint = new ReplyConstraint({ ...block, budget: 2 }, null, 99);
  expect(constraint.narrows).toBe(false);
  const { reply, forced } = walk(constraint, [1, 2, 3, end, 4]);
  expect(reply).toEqual([1, 2, closeA, end, closeB, 3, end, 4]);
  expect(forced).toEqual(block.closing);
});

test("a budget of nothing closes the block at once", () => {
  const { reply } = walk(new ReplyConstraint({ ...block, budget: 0 }, null, 99), [1]);
  expect(reply).toEqual([closeA, end, closeB, 1]);
});

test("a block that the model closes in time is left alone", () => {
  for (const budget of [2, 3, null]) {
    const { reply, forced } = walk(new ReplyConstraint({ ...block, budget }, null, 99), [
      1,
      end,
      2,
      3,
    ]);
    expect([reply, forced]).toEqual([[1, end, 2, 3], []]);
  }
});

test("asked twice, the same token is forced; nothing moves before the commit", () => {
  const constraint = new ReplyConstraint({ ...block, budget: 0 }, null, 99);
  expect([constraint.forced(), constraint.forced()]).toEqual([closeA, closeA]);
});

test("a form begins behind the block, and sees nothing of it", () => {
  for (const [budget, thought, forced] of [
    [null, [1, 9], [gap]],
    [1, [1], block.closing],
  ] as const) {
    const form = new Form();
    const constraint = new ReplyConstraint({ ...block, budget }, form, 99);
    expect(constraint.narrows).toBe(true);
    const walked = walk(constraint, [...thought, 7, 8]);
    expect(walked.forced).toEqual(forced);
    expect(form.seen).toEqual([7, 8]);
    expect(walked.allowed).toEqual([...thought.map(() => goesOn), set, set]);
  }
});

test("without a block, a form begins at once", () => {
  const form = new Form();
  const { allowed } = walk(new ReplyConstraint(null, form, 99), [1, end]);
  expect(allowed).toEqual([set, set]);
  expect(form.seen).toEqual([1, end]);
});

test("in a block that a form has to follow, nothing ends the reply", () => {
  const ids = Array.from({ length: 128 }, (_, id) => id);
  expect(ids.filter((id) => !hasToken(goesOn, id))).toEqual([3]);
  const free = new ReplyConstraint({ ...block, budget: 5 }, null, 99);
  expect(free.allowed()).toBeNull();
});

test("a form learns how many tokens the block has left it, and can force one", () => {
  const form = new Form();
  const constraint = new ReplyConstraint({ ...block, budget: 1 }, form, 8);
  const { reply, forced } = walk(constraint, [1, 7, 8, 6], 8);
  expect(form.left).toEqual([4, 3, 2]);
  expect(reply).toEqual([1, ...block.closing, 7, 8, 6, 3]);
  expect(forced).toEqual([...block.closing, 3]);
});

test("nothing ends a form that has yet to begin", () => {
  const constraint = new ReplyConstraint({ ...block, budget: null }, new Form(), 1);
  expect([constraint.forced(), constraint.allowed()]).toEqual([null, goesOn]);
});

test("a call within a think block ends it, and its budget says no more", () => {
  const called = { ...block, callId: 70, budget: 3 };
  const { reply, forced } = walk(new ReplyConstraint(called, null, 99), [1, 70, 2, 3, 4, 5]);
  expect([reply, forced]).toEqual([[1, 70, 2, 3, 4, 5], []]);
});

test("drafts may lead through the block and what closes it into the form", () => {
  const made = (budget: number | null) => new ReplyConstraint({ ...block, budget }, new Form(), 99);
  expect(drawable(made(null), [1, 2, end, gap, 7, 7, 8])).toBe(6);
  expect(drawable(made(null), [1, end, 7])).toBe(2);
  expect(drawable(made(2), [1, 2, ...block.closing, 7, 8])).toBe(6);
  expect(drawable(made(2), [1, 2, 4])).toBe(2);
  // What would end the reply.
  expect(drawable(made(null), [1, 3, 1])).toBe(1);
  expect(drawable(new ReplyConstraint(null, new Form(), 99), [7, 7, 1])).toBe(2);
});

test("where no form follows, anything may come behind a block", () => {
  const called = { ...block, callId: 70, budget: 2 };
  const made = () => new ReplyConstraint(called, null, 99);
  expect(drawable(made(), [1, 70, 5, 6, 7, 8])).toBe(6);
  expect(drawable(made(), [1, end, 3, 4, 5])).toBe(5);
  expect(drawable(made(), [1, 2, ...block.closing, 3, 4])).toBe(7);
  expect(drawable(made(), [1, 2, 3])).toBe(2);
  expect(new ReplyConstraint(null, null, 99).ahead()).toBe(anythingAhead);
});

test("looking ahead moves nothing", () => {
  const form = new Form();
  const constraint = new ReplyConstraint({ ...block, budget: 1 }, form, 99);
  drawable(constraint, [1, ...block.closing, 7, 7]);
  expect([constraint.forced(), constraint.allowed(), form.seen]).toEqual([null, goesOn, []]);
  constraint.commit(1);
  expect(drawable(constraint, [closeA, end, closeB, 7])).toBe(4);
  expect(constraint.forced()).toBe(closeA);
});
