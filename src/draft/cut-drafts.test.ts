import { expect, test } from "vitest";
import type { TokenId } from "../ids.ts";
import { anythingAhead, type LookAhead } from "../sampling/constraint.ts";
import { cutDrafts } from "./cut-drafts.ts";
import type { Proposal } from "./proposal.ts";

/** Each token must be larger than the one before it. */
const growing = (last: TokenId): LookAhead => ({
  after: (id) => (id > last ? growing(id) : null),
});

const chain = (...ids: TokenId[]): Proposal => ({ ids, parents: null, drafter: "copy" });
const tree = (ids: TokenId[], parents: number[]): Proposal => ({ ids, parents, drafter: "dflash" });

test("a chain ends before the first token that can't come", () => {
  expect(cutDrafts(chain(3, 5, 4, 9), growing(2))).toEqual(chain(3, 5));
  expect(cutDrafts(chain(3, 5, 9), growing(2))).toEqual(chain(3, 5, 9));
});

test("nothing is left where the first can't come", () => {
  expect(cutDrafts(chain(2, 5, 9), growing(2))).toBeNull();
  expect(cutDrafts(tree([1, 9, 2], [-1, 0, -1]), growing(2))).toBeNull();
});

test("a tree loses what can't come, and all that hangs from it", () => {
  const whole = tree([3, 4, 1, 8, 7, 2, 9, 5], [-1, 0, 1, 2, 1, -1, 5, -1]);
  expect(cutDrafts(whole, growing(2))).toEqual(tree([3, 4, 7, 5], [-1, 0, 1, -1]));
  expect(cutDrafts(whole, anythingAhead)).toEqual(whole);
});

test("what is left of a tree may be a chain", () => {
  const whole = tree([3, 4, 2, 9], [-1, 0, -1, 2]);
  expect(cutDrafts(whole, growing(2))).toEqual({ ...chain(3, 4), drafter: "dflash" });
});
