import fc from "fast-check";
import { expect, test } from "vitest";
import { orderCandidates } from "../backend/candidates.ts";
import { InvariantError } from "../errors.ts";
import type { TokenId } from "../ids.ts";
import { type LogitAdjustments, noAdjustments } from "./adjust.ts";
import { anythingAhead, type DrawConstraint, type LookAhead } from "./constraint.ts";
import { drawToken } from "./draw.ts";
import { candidatesNeeded, type SamplingParams } from "./params.ts";
import { Sampler } from "./sampler.ts";

function sampling(
  [temperature, topK, topP, minP]: readonly [number, number, number, number],
  adjust: Partial<LogitAdjustments> = {},
): SamplingParams {
  return { temperature, topK, topP, minP, seed: 42n, adjust: { ...noAdjustments, ...adjust } };
}

/** Draws from the row and commits, as a stream does. */
function next(sampler: Sampler, logits: Float32Array, position: number): TokenId {
  const row = orderCandidates(logits, sampler.candidatesNeeded, position);
  const id = sampler.draw(row, position);
  sampler.commit(id);
  return id;
}

const greedy = [0, 0, 1, 0] as const;

// Drawn with numpy: vLLM's penalties by whole rows, then the draw of docs/exactness.md.
test.each<[SamplingParams, TokenId[]]>([
  [sampling(greedy), Array(8).fill(494)],
  [sampling(greedy, { repetitionPenalty: 1.3 }), [136, 99, 420, 62, 383, 25, 346, 309]],
  [sampling(greedy, { repetitionPenalty: 0.8 }), Array(8).fill(494)],
  [sampling(greedy, { presencePenalty: 0.02 }), [494, 136, 494, 494, 494, 494, 494, 494]],
  [sampling(greedy, { frequencyPenalty: 0.003 }), [494, 494, 494, 494, 494, 494, 136, 494]],
  [sampling(greedy, { logitBias: new Map([[5, 100]]) }), Array(8).fill(5)],
  [
    sampling([0.7, 20, 0.8, 0], {
      repetitionPenalty: 1.2,
      frequencyPenalty: 0.1,
      presencePenalty: 0.5,
      logitBias: new Map([
        [5, 4],
        [301, 3],
      ]),
    }),
    [309, 556, 25, 62, 593, 346, 124, 5],
  ],
  [
    sampling([1, 40, 1, 0], { repetitionPenalty: 1.05, frequencyPenalty: 2, presencePenalty: -2 }),
    [186, 494, 334, 507, 593, 309, 322, 309],
  ],
])("%o draws the tokens of whole rows", (params, expected) => {
  const logits = Float32Array.from(
    { length: 600 },
    (_, id) => (((id * 7919 + 13) % 1000) - 400) / 125,
  );
  const promptIds = [494, 38, 38, 457, 2, 599];
  const sampler = new Sampler(params, promptIds);
  const drawn = expected.map((_, at) => next(sampler, logits, promptIds.length + at));
  expect(drawn).toEqual(expected);
});

test("with nothing on, a draw is drawToken's, from as many candidates", () => {
  for (const values of [greedy, [1, 20, 0.9, 0], [0.7, 0, 1, 0.1]] as const) {
    const params = sampling(values);
    const sampler = new Sampler(params, [1, 2, 3]);
    expect(sampler.candidatesNeeded).toBe(candidatesNeeded(params));
    const row = orderCandidates(Float32Array.of(1, 3, 2, 3), sampler.candidatesNeeded, 3);
    for (let position = 3; position < 40; position++) {
      const id = sampler.draw(row, position);
      expect(id).toBe(drawToken(row, params, position));
      sampler.commit(id);
    }
  }
});

test("with anything on, all candidates are needed, and fewer are refused", () => {
  const sampler = new Sampler(sampling(greedy, { logitBias: new Map([[0, 1]]) }), [2]);
  expect(sampler.candidatesNeeded).toBe(0);
  const cut = orderCandidates(Float32Array.of(1, 5, 3), 2, 1);
  expect(() => sampler.draw(cut, 1)).toThrow(InvariantError);
});

test("equal logits go to the lowest id, whichever of them was moved", () => {
  const row = orderCandidates(Float32Array.of(1, 0, 3, 1, 2), 0, 1);
  const draws = (id: TokenId, bias: number) =>
    new Sampler(sampling(greedy, { logitBias: new Map([[id, bias]]) }), [0]).draw(row, 1);
  expect(draws(1, 3)).toBe(1);
  expect(draws(4, 1)).toBe(2);
  expect(draws(2, -1)).toBe(2);
  expect(draws(2, -1.5)).toBe(4);
  const logitBias = new Map([
    [2, -0.5],
    [0, 1.5],
  ]);
  // Both moved to 2.5, the higher id from further up.
  expect(new Sampler(sampling(greedy, { logitBias }), [0]).draw(row, 1)).toBe(0);
});

const vocabSize = 40;
const idOf = fc.nat(vocabSize - 1);
// Few values, so that many logits are equal before and after they move.
const rowOf = fc
  .array(fc.integer({ min: -12, max: 12 }), { minLength: vocabSize, maxLength: vocabSize })
  .map((values) => Float32Array.from(values, (value) => value / 4));
const penaltyOf = fc.constantFrom(0, 0.25, 0.3, 1, 2, -0.5, -2);
const caseOf = fc.record({
  params: fc.record({
    temperature: fc.constantFrom(0, 0.7, 1.5),
    topK: fc.nat(45),
    topP: fc.constantFrom(1, 0.9, 0.5),
    minP: fc.constantFrom(0, 0.05),
    seed: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
    adjust: fc.record({
      repetitionPenalty: fc.constantFrom(1, 1.1, 2, 0.5),
      presencePenalty: penaltyOf,
      frequencyPenalty: penaltyOf,
      logitBias: fc
        .array(fc.tuple(idOf, fc.constantFrom(0, 0.25, -1, 3.3, 100, -100)), { maxLength: 8 })
        .map((entries) => new Map(entries)),
    }),
  }),
  promptIds: fc.array(idOf, { minLength: 1, maxLength: 30 }),
  rows: fc.array(rowOf, { minLength: 1, maxLength: 12 }),
});

/** The rule as vLLM writes it: over every token of the row, from the whole history. */
function adjustedRow(
  logits: Float32Array,
  { repetitionPenalty, presencePenalty, frequencyPenalty, logitBias }: LogitAdjustments,
  promptIds: readonly TokenId[],
  reply: readonly TokenId[],
): Float32Array {
  return logits.map((logit, id) => {
    const count = reply.filter((each) => each === id).length;
    const repeated = promptIds.includes(id) || count > 0;
    const penalised = logit > 0 ? logit / repetitionPenalty : logit * repetitionPenalty;
    const rest = (repeated ? penalised : logit) - frequencyPenalty * count;
    return rest - (count > 0 ? presencePenalty : 0) + (logitBias.get(id) ?? 0);
  });
}

test("merging the moved tokens is ordering the whole adjusted row", () => {
  fc.assert(
    fc.property(caseOf, ({ params, promptIds, rows }) => {
      const sampler = new Sampler(params, promptIds);
      const reply: TokenId[] = [];
      for (const logits of rows) {
        const position = promptIds.length + reply.length;
        const row = adjustedRow(logits, params.adjust, promptIds, reply);
        const right = drawToken(orderCandidates(row, 0, position), params, position);
        expect(next(sampler, logits, position)).toBe(right);
        reply.push(right);
      }
    }),
  );
});

test("draws that are not committed change nothing", () => {
  fc.assert(
    fc.property(caseOf, rowOf, ({ params, promptIds, rows }, rejected) => {
      const plain = new Sampler(params, promptIds);
      const drafted = new Sampler(params, promptIds);
      for (const [at, logits] of rows.entries()) {
        const position = promptIds.length + at;
        const need = drafted.candidatesNeeded;
        // Rows behind a draft that will be refused, and the row itself a first time.
        drafted.draw(orderCandidates(rejected, need, position + 1), position + 1);
        drafted.draw(orderCandidates(logits, need, position), position);
        expect(next(drafted, logits, position)).toBe(next(plain, logits, position));
      }
    }),
  );
});

test("a row is left as it came", () => {
  const row = orderCandidates(Float32Array.of(1, 5, 3), 0, 1);
  const before = structuredClone(row);
  const adjust = { repetitionPenalty: 9, logitBias: new Map([[0, 50]]) };
  expect(new Sampler(sampling(greedy, adjust), [1]).draw(row, 1)).toBe(0);
  expect(row).toEqual(before);
});

/** Allows the ids that aren't multiples of what was committed last. */
class NoMultiples implements DrawConstraint {
  readonly narrows: boolean = true;
  #last = 2;

  forced(): TokenId | null {
    return null;
  }

  allowed(): Int32Array {
    const set = new Int32Array(19);
    for (let id = 0; id < 600; id++) {
      if (id % this.#last !== 0) set[id >>> 5]! |= 1 << (id & 31);
    }
    return set;
  }

  commit(id: TokenId): void {
    this.#last = id;
  }

  ahead(): LookAhead {
    return anythingAhead;
  }
}

test("a constraint takes tokens out before anything is chosen among the rest", () => {
  const logits = Float32Array.from({ length: 600 }, (_, id) => ((id * 7919 + 13) % 1000) / 125);
  const samplings = [sampling(greedy), sampling([0.9, 5, 0.8, 0.01]), sampling([1, 0, 1, 0])];
  for (const params of samplings) {
    const sampler = new Sampler(params, [1], new NoMultiples());
    expect(sampler.candidatesNeeded).toBe(0);
    let last = 2;
    for (let position = 1; position < 40; position++) {
      const left = logits.map((logit, id) => (id % last === 0 ? -1e9 : logit));
      const row = orderCandidates(left, candidatesNeeded(params), position);
      const expected = drawToken(row, params, position);
      expect(next(sampler, logits, position)).toBe(expected);
      last = expected;
    }
  }
});

test("a forced token comes whatever the row says, and needs no more of it", () => {
  const forced: (TokenId | null)[] = [7, null, 8];
  const committed: TokenId[] = [];
  const constraint: DrawConstraint = {
    narrows: false,
    forced: () => forced[committed.length]!,
    allowed: () => null,
    commit: (id) => committed.push(id),
    ahead: () => anythingAhead,
  };
  const sampler = new Sampler(sampling(greedy), [1], constraint);
  expect(sampler.candidatesNeeded).toBe(1);
  const logits = Float32Array.of(0, 0, 5, 0, 0, 0, 0, 0, 0);
  expect([1, 2, 3].map((position) => next(sampler, logits, position))).toEqual([7, 2, 8]);
  expect(committed).toEqual([7, 2, 8]);
});

test("a constraint that leaves nothing is a bug", () => {
  const none: DrawConstraint = {
    narrows: true,
    forced: () => null,
    allowed: () => new Int32Array(1),
    commit: () => {},
    ahead: () => anythingAhead,
  };
  const sampler = new Sampler(sampling(greedy), [1], none);
  expect(() => next(sampler, Float32Array.of(1, 2), 1)).toThrow(InvariantError);
});
