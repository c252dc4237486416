import { expect, test } from "vitest";
import type { Backend, PassHandle, PassResult, Snapshot } from "../backend/backend.ts";
import { FakeBackend } from "../backend/fake/fake.ts";
import { nextTask } from "../clock.ts";
import type { Drafting } from "../draft/drafting.ts";
import { BackendLostError } from "../errors.ts";
import type { PageId, SlotId, TokenId } from "../ids.ts";
import { tinyDrafterShape } from "../model/drafter-shape.ts";
import type { Plan } from "../model/plan.ts";
import { tinyShape } from "../model/tiny-shape.ts";
import { plainSampling } from "../sampling/params.ts";
import type { RoundOutcome, RoundRequest } from "./live-stream.ts";
import { RoundLoop } from "./loop.ts";

const shape = tinyShape();
const drafter = { weights: { shape: tinyDrafterShape(shape) } };
const sizes = { shape, slots: 2, pages: 40, rowsMax: 128, drawsMax: 32, drafter };

/** In turns a block, copies that are wrong, and nothing. */
function mixedDrafting(): Drafting {
  let turn = 0;
  return {
    push: () => {},
    wish: (most, blocks) => {
      const kind = turn++ % 3;
      if (kind === 0 && blocks) return { kind: "block" };
      if (kind !== 1) return { kind: "none" };
      const ids = [1, 2].slice(0, most);
      return { kind: "proposal", proposal: { ids, parents: null, drafter: "copy" } };
    },
    choose: ({ rows }, _anchor, _position, most) => {
      const ids = rows.slice(0, most).map(({ ids: best }) => best[0]!);
      return { ids, parents: null, drafter: "dflash2" };
    },
    landed: () => {},
    idle: () => {},
  };
}
const options = { chunkRows: 4, drafting: mixedDrafting };

const verbs = ["open", "verify", "keep", "extend", "draft", "read", "save", "release"] as const;

/** Where a device is lost: in the n-th call of a verb, before or after its own work. */
interface Loss {
  readonly verb: (typeof verbs)[number];
  readonly when: "before" | "after";
  readonly call: number;
}

/** A fake that is lost once, and then takes a turn of the event loop for each read and save. */
class LosingFake extends FakeBackend {
  disposals = 0;
  #loss: Loss | null;
  #calls = 0;

  constructor(loss: Loss | null, own: typeof sizes = sizes) {
    super(own);
    this.#loss = loss;
  }

  /** Whether the loss came about. */
  get happened(): boolean {
    return this.#loss === null;
  }

  override open(slot: SlotId): void {
    this.#around("open", () => super.open(slot));
  }

  override verify(plan: Plan): PassHandle {
    return this.#around("verify", () => super.verify(plan));
  }

  override keep(handle: PassHandle, paths: readonly (readonly number[])[]): void {
    this.#around("keep", () => super.keep(handle, paths));
  }

  override extend(plan: Plan): void {
    this.#around("extend", () => super.extend(plan));
  }

  override draft(plan: Plan): PassHandle {
    return this.#around("draft", () => super.draft(plan));
  }

  override async read(handle: PassHandle): Promise<PassResult> {
    await nextTask();
    return await this.#around("read", () => super.read(handle));
  }

  override async save(slot: SlotId, pages: readonly PageId[], rows: number): Promise<Snapshot> {
    await nextTask();
    return await this.#around("save", () => super.save(slot, pages, rows));
  }

  override release(slot: SlotId): void {
    this.#around("release", () => super.release(slot));
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    this.disposals++;
    await super[Symbol.asyncDispose]();
  }

  #around<Result>(verb: Loss["verb"], work: () => Result): Result {
    const { verb: chosen, when, call } = this.#loss ?? {};
    const now = verb === chosen && ++this.#calls === call;
    if (now) this.#loss = null;
    if (now && when === "before") this.lose();
    const result = work();
    if (now && when === "after") this.lose();
    return result;
  }
}

function request(changes: Partial<RoundRequest> = {}): RoundRequest {
  return {
    promptIds: Array.from({ length: 9 }, (_, i) => (i * 31) % 300),
    maxTokens: 5,
    sampling: { ...plainSampling, temperature: 0, seed: 1n },
    eosIds: new Set(),
    fingerprint: true,
    draft: true,
    ...changes,
  };
}

/** All but how long it waited, which differs from run to run. */
interface Ended extends Omit<RoundOutcome, "queueMs"> {
  readonly ids: readonly TokenId[];
}

interface Run {
  readonly ended: Promise<Ended>;
  readonly cancel: () => void;
}

function start(loop: RoundLoop, changes: Partial<RoundRequest> = {}): Run {
  const ids: TokenId[] = [];
  const { promise, resolve } = Promise.withResolvers<Ended>();
  const cancel = loop.submit(request(changes), {
    prefilled: () => {},
    token: (id) => {
      ids.push(id);
      return false;
    },
    finished: ({ queueMs: _, ...outcome }) => resolve({ ...outcome, ids }),
  });
  return { ended: promise, cancel };
}

async function solo(changes: Partial<RoundRequest> = {}): Promise<Ended> {
  await using loop = new RoundLoop(new FakeBackend(sizes), options);
  return await start(loop, changes).ended;
}

/** A loop whose n-th backend is lost as `losses[n]` says. */
function losing(...losses: readonly Loss[]): { loop: RoundLoop; backends: LosingFake[] } {
  const backends: LosingFake[] = [];
  const next = () => {
    const backend = new LosingFake(losses[backends.length] ?? null);
    backends.push(backend);
    return backend;
  };
  return { loop: new RoundLoop(next(), { ...options, openAgain: async () => next() }), backends };
}

const cases = verbs.flatMap((verb) =>
  (["before", "after"] as const).map((when) => [verb, when] as const),
);

test.each(cases)(
  "lost in any %s, %s it: what ran ends so, and the rest is right",
  async (verb, when) => {
    const other = { promptIds: [8, 8, 8], maxTokens: 3 };
    const third = { promptIds: [5, 6], fingerprint: false };
    const brief = { promptIds: [2], maxTokens: 1 };
    const alone = [await solo(), await solo(other), await solo(third), await solo(brief)];
    let calls = 0;
    let failures = 0;
    for (; ; calls++) {
      const { loop, backends } = losing({ verb, when, call: calls + 1 });
      // Two run at a time, so the others wait at first.
      const runs = [start(loop), start(loop, other), start(loop, third), start(loop, brief)];
      const ended = await Promise.all(runs.map((run) => run.ended));
      if (!backends[0]!.happened) break;
      let failed = 0;
      for (const [index, { reason, error, ids, stateSha }] of ended.entries()) {
        if (reason === "error") {
          failed++;
          expect(error).toBeInstanceOf(BackendLostError);
          expect(alone[index]!.ids.slice(0, ids.length)).toEqual(ids);
        } else {
          expect({ ids, stateSha }).toEqual({
            ids: alone[index]!.ids,
            stateSha: alone[index]!.stateSha,
          });
        }
      }
      // What was read before the loss may have been all that its stream still needed.
      if (when === "before" && verb !== "release") expect(failed).toBeGreaterThan(0);
      expect(failed).toBeLessThan(3);
      failures += failed;
      const again = await start(loop).ended;
      expect(again).toEqual(alone[0]);
      expect(loop.condition).toEqual({ status: "ok", error: null, serving: true });
      expect(loop.free).toEqual({ slots: 2, pages: 40 });
      expect(backends).toHaveLength(2);
      await loop[Symbol.asyncDispose]();
      expect(backends.map((backend) => backend.disposals)).toEqual([1, 1]);
      expect(backends[1]!.openSlots.size).toBe(0);
    }
    expect(calls).toBeGreaterThan(1);
    expect(failures).toBeGreaterThan(0);
  },
);

test("lost while nobody waits: nothing is opened until somebody comes", async () => {
  const alone = await solo();
  const { loop, backends } = losing();
  expect(await start(loop).ended).toEqual(alone);
  backends[0]!.lose();
  await nextTask();
  expect(loop.condition).toMatchObject({ status: "lost", serving: true });
  expect(loop.condition.error!.message).toBe("the fake device was lost");
  expect(backends).toHaveLength(1);
  expect(await start(loop).ended).toEqual(alone);
  expect(backends).toHaveLength(2);
  expect(loop.condition.status).toBe("ok");
  await loop[Symbol.asyncDispose]();
});

test("lost twice in a row, the second time before anything ran", async () => {
  const alone = await solo();
  const { loop, backends } = losing(
    { verb: "read", when: "before", call: 2 },
    { verb: "open", when: "before", call: 1 },
  );
  const first = start(loop);
  expect((await first.ended).error!.code).toBe("backend_lost");
  expect((await start(loop).ended).error!.code).toBe("backend_lost");
  expect(await start(loop).ended).toEqual(alone);
  expect(backends).toHaveLength(3);
  await loop[Symbol.asyncDispose]();
  expect(backends.map((backend) => backend.disposals)).toEqual([1, 1, 1]);
});

/** A loop whose backend is lost, and whose openings the test ends one by one. */
function gated() {
  const openings: PromiseWithResolvers<Backend>[] = [];
  const first = new FakeBackend(sizes);
  const loop = new RoundLoop(first, {
    ...options,
    openAgain: () => {
      const opening = Promise.withResolvers<Backend>();
      openings.push(opening);
      return opening.promise;
    },
  });
  first.lose();
  return { loop, openings };
}

test("while it is opened again requests wait, one opening serves all, and cancels are heard", async () => {
  const alone = await solo();
  const { loop, openings } = gated();
  await nextTask();
  const early = start(loop);
  await nextTask();
  expect(loop.condition).toMatchObject({ status: "reopening", serving: false });
  const late = start(loop);
  const gone = start(loop);
  gone.cancel();
  await nextTask();
  expect(loop.counts).toEqual({ waiting: 3, running: 0 });
  expect(openings).toHaveLength(1);
  openings[0]!.resolve(new FakeBackend(sizes));
  expect(await early.ended).toEqual(alone);
  expect(await late.ended).toEqual(alone);
  expect((await gone.ended).reason).toBe("cancelled");
  expect(openings).toHaveLength(1);
  await loop[Symbol.asyncDispose]();
});

test("an opening that fails is told to all who wait, and tried again for the next", async () => {
  const alone = await solo();
  const { loop, openings } = gated();
  await nextTask();
  const waiting = [start(loop), start(loop)];
  await nextTask();
  waiting.push(start(loop));
  const gone = start(loop);
  gone.cancel();
  openings[0]!.reject(new Error("no adapter"));
  for (const run of waiting) {
    const { reason, error } = await run.ended;
    expect([reason, error!.code]).toEqual(["error", "backend_lost"]);
    expect(error!.message).toBe(
      "the fake device was lost. It could not be opened again: no adapter",
    );
  }
  expect((await gone.ended).reason).toBe("cancelled");
  expect(loop.condition).toMatchObject({ status: "lost", serving: false });
  expect(loop.condition.error!.message).toContain("no adapter");
  const next = start(loop);
  await nextTask();
  expect(loop.condition.status).toBe("reopening");
  openings[1]!.resolve(new FakeBackend(sizes));
  expect(await next.ended).toEqual(alone);
  expect(loop.condition).toEqual({ status: "ok", error: null, serving: true });
  await loop[Symbol.asyncDispose]();
});

test("the engine's end waits for an opening, and gives back what came of it", async () => {
  const { loop, openings } = gated();
  await nextTask();
  const run = start(loop);
  await nextTask();
  const disposal = loop[Symbol.asyncDispose]();
  const opened = new LosingFake(null);
  openings[0]!.resolve(opened);
  await disposal;
  expect((await run.ended).reason).toBe("cancelled");
  expect(opened.disposals).toBe(1);
});

test("without a way to open it again, what comes is refused with the reason", async () => {
  const backend = new LosingFake(null);
  const loop = new RoundLoop(backend, { chunkRows: 4 });
  const run = start(loop, { maxTokens: 500 });
  await nextTask();
  backend.lose();
  expect((await run.ended).error!.code).toBe("backend_lost");
  expect(() => start(loop)).toThrow("the fake device was lost");
  expect(loop.condition).toMatchObject({ status: "lost", serving: false });
});

test("a backend of other sizes is refused and given back", async () => {
  const { loop, openings } = gated();
  const run = start(loop);
  await nextTask();
  const other = new LosingFake(null, { ...sizes, slots: 1 });
  openings[0]!.resolve(other);
  expect((await run.ended).error!.message).toMatch(/other sizes/);
  expect(other.disposals).toBe(1);
  await loop[Symbol.asyncDispose]();
  expect(other.disposals).toBe(1);
});
