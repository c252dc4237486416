import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { type DraftChoice, DraftChooser, DraftHistory, type DraftOffer } from "./choose.ts";
import { type CostTable, costTable } from "./cost-table.ts";

/** Costs in plain passes: a window's first row 1, its others `row` each. */
const straight = (row: number, draftMs: number | null, keepMs = 0): CostTable => ({
  verifyMs: (rows) => 1 + row * (rows - 1),
  draftMs,
  keepMs,
});

/** A round of any width costs so many plain passes, half of the rest in the draft pass. */
const flat = (passes: number): CostTable => {
  const half = (passes - 1) / 2;
  return { verifyMs: (rows) => (rows === 1 ? 1 : 1 + half), draftMs: half, keepMs: 0 };
};

interface Reply {
  readonly ms: number;
  readonly choices: readonly DraftChoice[];
}

/** A reply of so many tokens: what is on offer in each round, and how many of its drafts are right. */
function reply(
  tokens: number,
  costs: CostTable,
  offer: (round: number) => Omit<DraftOffer, "room">,
  accepted: (choice: DraftChoice, token: number) => number,
): Reply {
  const chooser = new DraftChooser();
  const choices: DraftChoice[] = [];
  let ms = 0;
  for (let token = 0; token < tokens; ) {
    const room = Math.min(16, tokens - token);
    const choice = chooser.choose({ ...offer(choices.length), room }, costs);
    const drafts = choice.rows - 1;
    const right = Math.min(drafts, accepted(choice, token));
    ms += costs.verifyMs(choice.rows);
    if (choice.source === "model") ms += costs.draftMs!;
    if (drafts > 0) ms += costs.keepMs;
    chooser.observe(drafts, right, right < drafts, null);
    choices.push(choice);
    token += right + 1;
  }
  return { ms, choices };
}

/** Drafts that land with a chance of their own, by a generator of its own. */
function landing(chance: number, seed: number): (choice: DraftChoice) => number {
  let state = (seed * 2654435761 + 1) >>> 0;
  return ({ rows }) => {
    for (let draft = 1; draft < rows; draft++) {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      if (state / 2 ** 32 >= chance) return draft - 1;
    }
    return rows - 1;
  };
}

const model = () => ({ copied: 0, modelled: 7 });
const never = () => 0;

describe("what never lands costs less than 3 %", () => {
  const costs = [1.1, 1.25, 1.5, 1.75, 2, 2.25, 2.5].map(flat);
  const all = [...costs, straight(0.02, 0.3), straight(0.15, 0.6, 0.1), straight(0.3, 1.2)];

  it.each([256, 400, 1000])("in a reply of %i tokens", (tokens) => {
    for (const table of all) {
      expect(reply(tokens, table, model, never).ms).toBeLessThanOrEqual(tokens / 0.97);
      const copies = () => ({ copied: 15, modelled: 0 });
      expect(reply(tokens, table, copies, never).ms).toBeLessThanOrEqual(tokens / 0.97);
      const both = () => ({ copied: 15, modelled: 7 });
      expect(reply(tokens, table, both, never).ms).toBeLessThanOrEqual(tokens / 0.97);
    }
  });

  it("and is tried again, after longer and longer pauses", () => {
    const { choices } = reply(4000, flat(1.1), model, never);
    const tries = choices.flatMap(({ source }, round) => (source === "model" ? [round] : []));
    const gaps = tries.slice(1).map((round, at) => round - tries[at]!);
    const pauses = gaps.filter((gap) => gap > 1);
    expect(pauses.slice(0, 6).map((gap) => gap - 1)).toEqual([16, 32, 64, 128, 256, 512]);
    expect(new Set(pauses.slice(5))).toEqual(new Set([513]));
  });
});

test("no reply takes more than the budget, whatever costs, offers and outcomes", () => {
  const widths = fc.array(fc.double({ min: 0.1, max: 20, noNaN: true }), {
    minLength: 16,
    maxLength: 16,
  });
  const rounds = fc.array(fc.tuple(fc.nat(20), fc.nat(15), fc.nat(15)), { minLength: 1 });
  const part = fc.double({ min: 0.01, max: 5, noNaN: true });
  fc.assert(
    fc.property(widths, part, part, rounds, fc.integer({ min: 1, max: 600 }), (...drawn) => {
      const [verify, draftMs, keepMs, script, tokens] = drawn;
      const table = costTable({
        verify: verify.map((ms, at) => [at + 1, ms]),
        draftMs,
        keepMs,
        shared: null,
      });
      const at = (round: number) => script[round % script.length]!;
      const offer = (round: number) => ({ copied: at(round)[0], modelled: at(round)[1] });
      const { ms } = reply(tokens, table, offer, (_, token) => at(token)[2]);
      expect(ms / table.verifyMs(1)).toBeLessThanOrEqual(1.007 * tokens + 6 + 1e-6);
    }),
    { numRuns: 300 },
  );
});

test("a new stream begins with what others found", () => {
  const costs = flat(3.3);
  const first = (history: DraftHistory) =>
    new DraftChooser(history).choose({ copied: 0, modelled: 7, room: 16 }, costs);
  const history = new DraftHistory();
  const teacher = new DraftChooser(history);
  for (let round = 0; round < 40; round++) {
    teacher.choose({ copied: 0, modelled: 7, room: 16 }, null);
    teacher.observe(7, 7, false, null);
  }
  expect(history.model.expectedTokens(7)).toBeGreaterThan(6.5);
  expect(history.copy.expectedTokens(7)).toBe(new DraftHistory().copy.expectedTokens(7));
  const student = new DraftChooser(history);
  expect(first(history)).toEqual({ source: "model", rows: 8 });
  // A miss doesn't make it pause, as it would without the others.
  student.choose({ copied: 0, modelled: 7, room: 16 }, costs);
  student.observe(7, 0, true, null);
  expect(student.choose({ copied: 0, modelled: 7, room: 16 }, costs).source).toBe("model");
  const alone = new DraftChooser();
  alone.choose({ copied: 0, modelled: 7, room: 16 }, costs);
  alone.observe(7, 0, true, null);
  expect(alone.choose({ copied: 0, modelled: 7, room: 16 }, costs).source).toBe("none");
});

describe("what lands pays", () => {
  it.each([
    [0.9, 2.5, 0.5],
    [0.8, 2, 0.52],
    [0.8, 1.5, 0.42],
    [0.95, 1.25, 0.24],
  ])("chance %f at %f plain passes a round", (chance, passes, most) => {
    let ms = 0;
    for (let seed = 1; seed <= 40; seed++) {
      ms += reply(256, flat(passes), model, landing(chance, seed)).ms;
    }
    expect(ms / 40 / 256).toBeLessThan(most);
  });

  it("again, after a text on which nothing landed", () => {
    const changing = (choice: DraftChoice, token: number) => (token < 300 ? 0 : choice.rows - 1);
    const { ms, choices } = reply(1000, flat(1.5), model, changing);
    expect(ms).toBeLessThan(680);
    expect(choices.slice(-20).every(({ source }) => source === "model")).toBe(true);
  });

  it("and after a gain the pauses begin anew", () => {
    // Good and bad stretches of 150 tokens.
    const waves = ({ rows }: DraftChoice, token: number) => (token % 300 < 150 ? rows - 1 : 0);
    const { choices } = reply(3000, flat(1.5), model, waves);
    const tries = choices.flatMap(({ source }, round) => (source === "model" ? [round] : []));
    const longest = Math.max(...tries.slice(1).map((round, at) => round - tries[at]!));
    expect(longest).toBeLessThanOrEqual(129);
  });
});

describe("the choice", () => {
  it("is the width that brings most tokens in a ms", () => {
    // The prior's tokens for 1 to 7 drafts: 1.85 2.49 2.93 3.22 3.40 3.49 3.54.
    const widthOf = (costs: CostTable) =>
      new DraftChooser().choose({ copied: 0, modelled: 7, room: 16 }, costs).rows - 1;
    expect(widthOf(straight(0, 0.5))).toBe(7);
    expect(widthOf(straight(0.1, 0.5))).toBe(5);
    expect(widthOf(straight(0.3, 0.05))).toBe(2);
    expect(widthOf(straight(0.8, 0.01))).toBe(1);
  });

  it("is a copy where it brings more than the model, for it costs no pass", () => {
    const offer = { copied: 15, modelled: 7, room: 16 };
    expect(new DraftChooser().choose(offer, straight(0, 0.5))).toEqual({
      source: "copy",
      rows: 16,
    });
    // Each for 1.5 passes: 1 + 0.94 beside 3.54 tokens.
    const one = { ...offer, copied: 1 };
    const costs: CostTable = {
      verifyMs: (rows) => (rows === 1 ? 1 : 1.5),
      draftMs: 0.1,
      keepMs: 0,
    };
    expect(new DraftChooser().choose(one, costs)).toEqual({ source: "model", rows: 8 });
  });

  it("stays within the room, and is plain where there is none", () => {
    const offer = { copied: 15, modelled: 7, room: 4 };
    expect(new DraftChooser().choose(offer, straight(0, 0.1)).rows).toBe(4);
    const full = { copied: 15, modelled: 7, room: 1 };
    for (const costs of [null, straight(0, 0.1)]) {
      expect(new DraftChooser().choose(full, costs)).toEqual({ source: "none", rows: 1 });
    }
    expect(() => new DraftChooser().choose({ ...full, room: 17 }, null)).toThrow(/17 rows/);
  });

  it("is full width while no costs are known, however the drafts land", () => {
    const chooser = new DraftChooser();
    for (let round = 0; round < 50; round++) {
      expect(chooser.choose({ copied: 0, modelled: 7, room: 16 }, null)).toEqual({
        source: "model",
        rows: 8,
      });
      chooser.observe(7, 0, true, null);
      expect(chooser.choose({ copied: 9, modelled: 7, room: 16 }, null)).toEqual({
        source: "copy",
        rows: 10,
      });
      chooser.observe(9, 0, true, null);
    }
  });

  it("tries a drafter once even where the prior says that it can't pay", () => {
    const { choices } = reply(40, straight(0.3, 2.4), model, ({ rows }) => rows - 1);
    expect(choices[0]!.source).toBe("model");
    const tooDear = reply(40, straight(8, 8), model, ({ rows }) => rows - 1);
    expect(tooDear.choices.every(({ source }) => source === "none")).toBe(true);
  });
});

describe("a block whose chances are known", () => {
  const offer = { copied: 0, modelled: 7, room: 16 };
  // A row costs 0.4 plain passes more, the block one.
  const costs = straight(0.4, 1);

  it("is verified as far as it is worth it", () => {
    const chooser = new DraftChooser();
    chooser.choose(offer, costs);
    expect(chooser.worth([0.99, 0.98, 0.97, 0.96, 0.95, 0.94, 0.93])).toBe(7);
    expect(chooser.worth([0.99, 0.98, 0.2, 0.1, 0.1, 0.1, 0.1])).toBe(2);
    expect(chooser.worth([0.05, 0.01])).toBe(0);
    expect(chooser.worth([])).toBe(0);
  });

  it("is verified whole where rows cost nothing, or nobody knows what they cost", () => {
    const chooser = new DraftChooser();
    chooser.choose(offer, straight(0, 1));
    expect(chooser.worth([0.5, 0.1, 0.01])).toBe(3);
    chooser.choose(offer, null);
    expect(chooser.worth([0.5, 0, 0])).toBe(3);
  });

  it("is believed less where its drafts don't land", () => {
    const chooser = new DraftChooser();
    const chances = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3];
    chooser.choose(offer, costs);
    const before = chooser.worth(chances);
    for (let round = 0; round < 30; round++) {
      chooser.choose(offer, null);
      chooser.worth(chances);
      chooser.choose(offer, costs);
      chooser.worth(chances);
      chooser.observe(7, 0, true, null);
    }
    chooser.choose(offer, costs);
    expect(chooser.worth(chances)).toBeLessThan(before);
  });
});

test("rounds that take longer than was measured are chosen less", () => {
  const offer = { copied: 0, modelled: 7, room: 16 };
  const history = new DraftHistory();
  const first = () => new DraftChooser(history).choose(offer, straight(0.02, 0.3)).source;
  expect(first()).toBe("model");
  for (let round = 0; round < 60; round++) {
    const chooser = new DraftChooser(history);
    const { rows } = chooser.choose(offer, straight(0.02, 0.3));
    chooser.observe(rows - 1, 0, true, 10);
  }
  expect(history.pace.scale).toBeGreaterThan(1.8);
});

test("blocks of which nothing is worth its rows are asked for less and less", () => {
  const chooser = new DraftChooser();
  let asked = 0;
  for (let round = 0; round < 200; round++) {
    const { source } = chooser.choose({ copied: 0, modelled: 7, room: 16 }, straight(0.1, 0.2));
    if (source === "model") {
      asked++;
      expect(chooser.worth([0.01, 0, 0, 0, 0, 0, 0])).toBe(0);
    }
    chooser.observe(0, 0, false, null);
  }
  expect(asked).toBeLessThan(20);
});

test("a reply's end is no miss", () => {
  const history = new DraftHistory();
  const before = history.model.chance(3);
  for (let round = 0; round < 30; round++) {
    const chooser = new DraftChooser(history);
    chooser.choose({ copied: 0, modelled: 7, room: 16 }, null);
    chooser.observe(7, 2, false, null);
  }
  expect(history.model.chance(1)).toBeGreaterThan(0.95);
  expect(history.model.chance(3)).toBe(before);
});

test("a drafter whose last round won is asked again, whatever the others say", () => {
  const history = new DraftHistory();
  const offer = { copied: 0, modelled: 7, room: 16 };
  // Where nothing landed in other streams.
  for (let round = 0; round < 300; round++) history.model.observe(7, 0);
  const chooser = new DraftChooser(history);
  for (let round = 0; round < 3; round++) {
    expect(chooser.choose(offer, flat(5.9))).toEqual({ source: "model", rows: 8 });
    chooser.observe(7, 7, false, null);
  }
  chooser.observe(7, 1, true, null);
  expect(chooser.choose(offer, flat(5.9)).source).toBe("none");
});
