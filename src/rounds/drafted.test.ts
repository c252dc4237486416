import { describe, expect, test } from "vitest";
import type { PassHandle, PassResult } from "../backend/backend.ts";
import { FakeBackend, type FakeOptions } from "../backend/fake/fake.ts";
import { nextTask } from "../clock.ts";
import type { Drafting } from "../draft/drafting.ts";
import type { Proposal } from "../draft/proposal.ts";
import type { TokenId } from "../ids.ts";
import { windowRowsMax } from "../limits.ts";
import { tinyDrafterShape } from "../model/drafter-shape.ts";
import { tinyShape } from "../model/tiny-shape.ts";
import { anythingAhead, type DrawConstraint, type LookAhead } from "../sampling/constraint.ts";
import { plainSampling } from "../sampling/params.ts";
import type { RoundOutcome, RoundRequest } from "./live-stream.ts";
import { RoundLoop } from "./loop.ts";

const shape = tinyShape();
const promptIds = [3, 1, 4, 1, 5];
const greedy = { ...plainSampling, temperature: 0, seed: 1n };

function request(changes: Partial<RoundRequest>): RoundRequest {
  const common = { promptIds, maxTokens: 40, sampling: greedy, eosIds: new Set<TokenId>() };
  return { ...common, fingerprint: true, draft: true, ...changes };
}

type Propose = (reply: readonly TokenId[], most: number) => Omit<Proposal, "drafter"> | null;

type Logits = NonNullable<FakeOptions["logits"]>;

interface Run extends RoundOutcome {
  readonly ids: readonly TokenId[];
}

/** A request on a backend of its own, whose drafts a function makes of the reply so far. */
async function run(
  propose: Propose,
  changes: Partial<RoundRequest> = {},
  onToken: (ids: readonly TokenId[], cancel: () => void) => boolean = () => false,
  logits: Logits = () => {},
): Promise<Run> {
  const sizes = { shape, slots: 1, pages: 2, rowsMax: 64, drawsMax: windowRowsMax };
  const drafter = { weights: { shape: tinyDrafterShape(shape) } };
  const backend = new FakeBackend({ ...sizes, drafter, logits });
  const ids: TokenId[] = [];
  const drafting: Drafting = {
    push: () => {},
    wish: (most) => {
      const proposal = propose(ids, most);
      if (!proposal) return { kind: "none" };
      return { kind: "proposal", proposal: { ...proposal, drafter: "copy" } };
    },
    choose: () => null,
    landed: () => {},
    idle: () => {},
  };
  const loop = new RoundLoop(backend, { chunkRows: 32, drafting: () => drafting });
  const { promise, resolve } = Promise.withResolvers<RoundOutcome>();
  const cancel = loop.submit(request(changes), {
    prefilled: () => {},
    token: (id) => {
      ids.push(id);
      return onToken(ids, cancel);
    },
    finished: resolve,
  });
  const outcome = await promise;
  expect(loop.free).toEqual({ slots: 1, pages: 2 });
  await loop[Symbol.asyncDispose]();
  return { ...outcome, ids };
}

const plain = (changes: Partial<RoundRequest> = {}) => run(() => null, changes);
const truth = (await plain()).ids;

/** The right tokens. */
const right: Propose = (reply, most) => {
  return { ids: truth.slice(reply.length, reply.length + most), parents: null };
};
const wrong = (id: TokenId): TokenId => (id + 1) % shape.vocabSize;

function expectSame(drafted: Run, expected: Run): void {
  const { ids, reason, stateSha, contextSha } = expected;
  expect(drafted).toMatchObject({ ids, reason, stateSha, contextSha, error: null });
}

test("right drafts are all taken, in windows as wide as can be", async () => {
  const drafted = await run(right);
  expectSame(drafted, await plain());
  // A first token, then 16, 16 and 7 with their windows' draws.
  expect(drafted.speculative).toMatchObject({ rounds: 3, drafted: 36, accepted: 36 });
  expect(drafted.speculative.tokensPerRound).toBe(13);
  expect(drafted.speculative.byDrafter).toEqual({ copy: { rounds: 3, drafted: 36, accepted: 36 } });
});

test("wrong drafts cost rounds and change nothing", async () => {
  const drafted = await run((reply, most) => {
    return { ids: right(reply, most)!.ids.map(wrong), parents: null };
  });
  expectSame(drafted, await plain());
  expect(drafted.speculative).toMatchObject({ rounds: 39, accepted: 0, tokensPerRound: 1 });
});

test.each([1, 2, 5])("drafts that go wrong after %i tokens", async (good) => {
  const drafted = await run((reply, most) => {
    const ids = right(reply, most)!.ids.map((id, at) => (at < good ? id : wrong(id)));
    return { ids, parents: null };
  });
  expectSame(drafted, await plain());
  expect(drafted.speculative.rounds).toBe(Math.ceil(39 / (good + 1)));
});

test("rounds without drafts may come between", async () => {
  const drafted = await run((reply, most) => (reply.length % 3 === 0 ? null : right(reply, most)));
  expectSame(drafted, await plain());
});

test("a tree's right path is found behind wrong siblings", async () => {
  const drafted = await run((reply, most) => {
    const ids: TokenId[] = [];
    const parents: number[] = [];
    let parent = -1;
    for (const id of right(reply, Math.floor(most / 2))!.ids) {
      ids.push(wrong(id), id);
      parents.push(parent, parent);
      parent = ids.length - 1;
    }
    return ids.length > 0 ? { ids, parents } : null;
  });
  expectSame(drafted, await plain());
  expect(drafted.speculative.rounds).toBe(7);
});

test.each([1, 3, 4, 16, 17])(
  "eos as token %i of the reply, inside a window or at its end",
  async (at) => {
    const eosIds = new Set([truth[at - 1]!]);
    const length = truth.indexOf(truth[at - 1]!) + 1;
    const drafted = await run(right, { eosIds });
    expectSame(drafted, await plain({ eosIds }));
    expect(drafted.ids).toEqual(truth.slice(0, length));
    expect(drafted.reason).toBe("stop");
  },
);

test.each([1, 2, 9, 17, 18])("at most %i tokens", async (maxTokens) => {
  const drafted = await run(right, { maxTokens });
  expectSame(drafted, await plain({ maxTokens }));
  expect(drafted.ids).toEqual(truth.slice(0, maxTokens));
});

test("a stop string inside a window ends the reply there", async () => {
  const stopAt = (ids: readonly TokenId[]) => ids.length === 7;
  const drafted = await run(right, {}, stopAt);
  expectSame(drafted, await run(() => null, {}, stopAt));
  expect(drafted.ids).toHaveLength(7);
});

test("a cancel inside a window lets no token more through", async () => {
  const drafted = await run(right, {}, (ids, cancel) => {
    if (ids.length === 7) cancel();
    return false;
  });
  expect(drafted.reason).toBe("cancelled");
  expect(drafted.ids).toEqual(truth.slice(0, 7));
});

test("a listener that throws inside a window ends its own stream", async () => {
  const drafted = await run(right, {}, (ids) => {
    if (ids.length === 7) throw new Error("planted");
    return false;
  });
  expect(drafted).toMatchObject({ reason: "error", error: { message: /planted/ } });
});

test("a request without drafts is served serially, and its context is left alone", async () => {
  const serial = await run(right, { draft: false });
  expectSame({ ...serial, contextSha: (await plain()).contextSha }, await plain());
  expect(serial.contextSha).toBeNull();
  expect(serial.speculative).toMatchObject({ rounds: 39, drafted: 0, byDrafter: {} });
});

test("logits that aren't finite end the reply where it gets to them, and not before", async () => {
  const histories: number[] = [];
  await run(
    () => null,
    {},
    () => false,
    (_, history) => histories.push(history),
  );
  // The row that draws the reply's tenth token.
  const poison: Logits = (row, history) => {
    if (history === histories[9]) row[0] = Number.NaN;
  };
  const drafted = await run(right, {}, () => false, poison);
  expect(drafted).toMatchObject({ reason: "error", error: { code: "non_finite_logits" } });
  expect(drafted.ids).toEqual(truth.slice(0, 9));
  const wrongAtTen: Propose = (reply, most) => {
    const ids = right(reply, most)!.ids.map((id, at) => (reply.length + at === 8 ? wrong(id) : id));
    return { ids, parents: null };
  };
  const short = await run(wrongAtTen, { maxTokens: 9 }, () => false, poison);
  expectSame(short, await plain({ maxTokens: 9 }));
});

test("a reply ends at the end of its pages, with windows up to there", async () => {
  const longest = 2 * 64 - promptIds.length;
  const whole = await plain({ maxTokens: longest });
  const drafted = await run(
    (reply, most) => ({ ids: whole.ids.slice(reply.length, reply.length + most), parents: null }),
    { maxTokens: longest },
  );
  expectSame(drafted, whole);
});

/** A form in which each token, divided by 3, leaves what its place does. */
class Thirds implements DrawConstraint {
  readonly narrows = true;
  readonly #look: (place: number) => LookAhead;
  #tokens = 0;

  /** @param look what drafts are told at each place */
  constructor(look: (place: number) => LookAhead = thirdsFrom) {
    this.#look = look;
  }

  forced(): TokenId | null {
    return null;
  }

  allowed(): Int32Array {
    const set = new Int32Array(Math.ceil(shape.vocabSize / 32));
    for (let id = this.#tokens % 3; id < shape.vocabSize; id += 3) set[id >>> 5]! |= 1 << (id & 31);
    return set;
  }

  commit(): void {
    this.#tokens++;
  }

  ahead(): LookAhead {
    return this.#look(this.#tokens);
  }
}

const thirdsFrom = (place: number): LookAhead => ({
  after: (id) => (id % 3 === place % 3 ? thirdsFrom(place + 1) : null),
});

describe("drafts of a reply that has a form", () => {
  const formed = (look?: (place: number) => LookAhead) => ({ constraint: new Thirds(look) });

  /** The right tokens, and from the fourth on such as the form doesn't allow. */
  const straying = async (): Promise<Propose> => {
    const { ids } = await plain(formed());
    return (reply, most) => ({
      ids: Array.from({ length: most }, (_, at) => {
        const id = ids[reply.length + at] ?? 0;
        return at < 3 ? id : wrong(id);
      }),
      parents: null,
    });
  };

  test("take no rows where the form doesn't allow them", async () => {
    const drafted = await run(await straying(), formed());
    expectSame(drafted, await plain(formed()));
    // A first token, then nine rounds of three drafts and a draw, and one that has room for two.
    expect(drafted.speculative).toMatchObject({ rounds: 10, drafted: 29, accepted: 29 });
    const uncut = await run(
      await straying(),
      formed(() => anythingAhead),
    );
    expectSame(uncut, drafted);
    expect(uncut.speculative).toMatchObject({ rounds: 10, accepted: 29 });
    expect(uncut.speculative.drafted).toBeGreaterThan(100);
  });

  test("take none at all where the first isn't allowed", async () => {
    const strays: Propose = (reply, most) => ({
      ids: Array.from({ length: most }, () => reply.length + 1),
      parents: null,
    });
    const drafted = await run(strays, formed());
    expectSame(drafted, await plain(formed()));
    expect(drafted.speculative).toMatchObject({ rounds: 39, drafted: 0, byDrafter: {} });
  });

  test("decide nothing, however wrongly they are cut", async () => {
    const expected = await plain(formed());
    for (let share = 1; share < 6; share++) {
      let asked = 0;
      const lies: LookAhead = { after: () => (++asked % share === 0 ? null : lies) };
      const chain = await run(
        await straying(),
        formed(() => lies),
      );
      expectSame(chain, expected);
    }
  });
});

/** Is read a task later, as a device is: a prompt's pass before the window that was given behind it. */
class SlowFake extends FakeBackend {
  override async read(handle: PassHandle): Promise<PassResult> {
    await nextTask();
    return await super.read(handle);
  }
}

test("a reply may end with its prompt while another's window, which keeps logits, is open", async () => {
  const sizes = { shape, slots: 2, pages: 4, rowsMax: 64, drawsMax: 2 * windowRowsMax };
  const backend = new SlowFake({
    ...sizes,
    drafter: { weights: { shape: tinyDrafterShape(shape) } },
  });
  const reply: TokenId[] = [];
  const drafting: Drafting = {
    push: () => {},
    wish: (most) => {
      return { kind: "proposal", proposal: { ...right(reply, most)!, drafter: "copy" } };
    },
    choose: () => null,
    landed: () => {},
    idle: () => {},
  };
  await using loop = new RoundLoop(backend, { chunkRows: 32, drafting: () => drafting });
  const served = (changes: Partial<RoundRequest>, ids: TokenId[]): Promise<Run> => {
    const { promise, resolve } = Promise.withResolvers<Run>();
    loop.submit(request(changes), {
      prefilled: () => {},
      token: (id) => ids.push(id) === 0,
      finished: (outcome) => resolve({ ...outcome, ids }),
    });
    return promise;
  };
  // The second one's prompt is computed beside the first one's first window.
  const [long, short] = await Promise.all([served({}, reply), served({ maxTokens: 1 }, [])]);
  expectSame(long, await plain());
  expect(long.speculative.rounds).toBe(3);
  expectSame(short, await plain({ maxTokens: 1 }));
});

test("each wish is followed by what came of it, and nothing else is told", async () => {
  const heard: string[] = [];
  const drafting: Drafting = {
    push: () => {},
    wish: (most) => {
      heard.push(`wish ${most}`);
      if (most < 3) return { kind: "none" };
      const ids = [wrong(truth[1]!)];
      return { kind: "proposal", proposal: { ids, parents: null, drafter: "copy" } };
    },
    choose: () => null,
    landed: (_, accepted) => heard.push(`landed ${accepted}`),
    idle: () => heard.push("idle"),
  };
  const sizes = { shape, slots: 1, pages: 1, rowsMax: 64, drawsMax: windowRowsMax };
  await using loop = new RoundLoop(new FakeBackend(sizes), {
    chunkRows: 32,
    drafting: () => drafting,
  });
  const { promise, resolve } = Promise.withResolvers<RoundOutcome>();
  loop.submit(request({ maxTokens: 5 }), {
    prefilled: () => {},
    token: () => false,
    finished: resolve,
  });
  await promise;
  // The reply's last token needs no draft: its round asks for none.
  expect(heard).toEqual(["wish 3", "landed 0", "wish 2", "idle", "wish 1", "idle"]);
});
