import { beforeEach, expect, test, vi } from "vitest";
import type { Backend, HeldState } from "../../backend/backend.ts";
import type { SpillFiles } from "../../state/spill-files.ts";
import { faulty, type Opener } from "./faulty.cases.ts";
import { failedOf, fake, runResume, shortStory } from "./resume.cases.ts";

/** What is wrong above the backend's interface. */
const planted = vi.hoisted(() => ({
  tokenFewer: false,
  contextsClaimed: false,
  marksMissing: false,
  passesMissing: false,
  floatsFlipped: false,
  filesIgnored: false,
  countsOff: false,
}));

beforeEach(() => {
  for (const fault of Object.keys(planted) as (keyof typeof planted)[]) planted[fault] = false;
});

vi.mock(import("../../state/prefix-cache.ts"), async (original) => {
  const { PrefixCache } = await original();
  class FaultyCache extends PrefixCache {
    /** Its state lacks the last of the tokens that it is said to be of. */
    override longest(...asked: Parameters<InstanceType<typeof PrefixCache>["longest"]>) {
      const found = super.longest(...asked);
      const most = asked[0].length - 1;
      if (!found || !planted.tokenFewer || found.rows === most) return found;
      return { ...found, rows: found.rows + 1 };
    }

    /** States of plain streams are said to have the drafter's context. */
    override add(...[prefix, held]: Parameters<InstanceType<typeof PrefixCache>["add"]>) {
      super.add(planted.contextsClaimed ? { ...prefix, context: true } : prefix, held);
    }
  }
  return { PrefixCache: FaultyCache };
});

vi.mock(import("../../rounds/live-stream.ts"), async (original) => {
  const live = await original();
  const { LiveStream } = live;
  class MiscountedStream extends LiveStream {
    constructor(...asked: ConstructorParameters<typeof LiveStream>) {
      super(...asked);
      if (!planted.countsOff) return;
      let cached = this.cached;
      Object.defineProperty(this, "cached", {
        get: () => cached,
        set: (told: NonNullable<typeof cached>) => {
          cached = { ...told, rows: Math.max(told.rows - 1, 0) };
        },
      });
    }
  }
  return { ...live, LiveStream: MiscountedStream };
});

vi.mock(import("../../text/prompt-marks.ts"), async (original) => {
  const marks = await original();
  const promptMarks: typeof marks.promptMarks = (...asked) => {
    const found = marks.promptMarks(...asked);
    return planted.marksMissing ? found.filter(({ kind }) => kind !== "history") : found;
  };
  const nextTurnIds: typeof marks.nextTurnIds = (...asked) =>
    planted.passesMissing ? null : marks.nextTurnIds(...asked);
  return { ...marks, promptMarks, nextTurnIds };
});

vi.mock(import("../../state/spill-files-node.ts"), async (original) => {
  const disk = await original();
  const { readHeader } = await import("../../state/spill-header.ts");
  const { decodeSpill, encodeSpill } = await import("../../state/spill-file.ts");
  /** Another state, and a checksum that is right. */
  const flipped = async (bytes: Uint8Array): Promise<Uint8Array> => {
    const { identity } = readHeader(bytes)!;
    const entry = await decodeSpill(bytes, identity);
    if (!entry) return bytes;
    entry.snapshot.state[0] = entry.snapshot.state[0]! + 1;
    return Buffer.concat([...encodeSpill(entry, identity)]);
  };
  const spillFiles: typeof disk.spillFiles = (...asked) => {
    const files = disk.spillFiles(...asked);
    const changed: SpillFiles = {
      ...files,
      list: async () => (planted.filesIgnored ? [] : await files.list()),
      read: async (name, bytesMax) => {
        const bytes = await files.read(name, bytesMax);
        const whole = bytesMax === undefined;
        return bytes && whole && planted.floatsFlipped ? await flipped(bytes) : bytes;
      },
    };
    return changed;
  };
  return { ...disk, spillFiles };
});

/** Failed cells but the coverage, which has its own say on a fake. */
async function linesOf(open: Opener = fake, turns = shortStory.turns): Promise<string[]> {
  const report = await runResume({ open }, { ...shortStory, turns });
  return failedOf(report).filter((line) => !line.startsWith("coverage"));
}

const names = (lines: readonly string[]) =>
  lines.map((line) => line.split(": ").slice(0, 2).join(": "));
const wrongReply = /token \d+ is \d+, not \d+|the state differs/;

test("nothing is planted", async () => {
  expect(await linesOf()).toEqual([]);
});

test("a state of one token fewer", async () => {
  planted.tokenFewer = true;
  const lines = await linesOf();
  expect(names(lines)).toEqual(expect.arrayContaining(["cached: turn 2", "at once: turn 2"]));
  // Wrong replies have other lengths, and so costs.
  const interrupted = /token \d+ of an interrupted reply differs/;
  const found = new RegExp(`${wrongReply.source}|${interrupted.source}|all turns`);
  for (const line of lines) expect(line).toMatch(found);
});

test("states of plain streams, without the drafter's context, that drafted ones go on from", async () => {
  planted.contextsClaimed = true;
  const lines = await linesOf(fake, 3);
  expect(names(lines)).toEqual(expect.arrayContaining(["cached: turn 3", "spilled: turn 3"]));
  // The fake refuses to draft behind such a context.
  for (const line of lines) expect(line).toMatch(/a draft whose context is wrong|context differs/);
});

/** A resumed stream gets the state that was held before the one that it asks for. */
const mixedUp = (backend: Backend): Partial<Backend> => {
  const before = new Map<HeldState, HeldState>();
  let latest: HeldState | null = null;
  return {
    hold: async (slot) => {
      const held = await backend.hold(slot);
      before.set(held, latest ?? held);
      latest = held;
      return held;
    },
    resume: (slot, held) => backend.resume(slot, before.get(held)!),
  };
};

test.each<[string, (backend: Backend) => Partial<Backend>]>([
  ["states that are mixed up", mixedUp],
  ["pages that are shared in part, and not copied", () => ({ copyPage: () => {} })],
])("%s", async (_, fault) => {
  const lines = await linesOf(faulty(fake, fault));
  expect(names(lines)).toContain("cached: turn 2");
  expect(lines.some((line) => wrongReply.test(line))).toBe(true);
});

test("a state on disk of which a float is another", async () => {
  planted.floatsFlipped = true;
  const lines = await linesOf();
  expect(names(lines)).toContain("restarted: turn 2");
  for (const line of lines) expect(line).toMatch(/^restarted: .*(token \d+ is|the state differs)/);
});

test("files that an engine doesn't look for", async () => {
  planted.filesIgnored = true;
  const lines = await linesOf();
  expect(lines).toEqual(
    expect.arrayContaining([
      expect.stringMatching(/^restarted: foreign files: .* are still there/),
      expect.stringMatching(/^restarted: turn 2: 0 tokens were cached, not \d+/),
    ]),
  );
  for (const line of lines) expect(line).toMatch(/^restarted: /);
});

/** The conversation is computed more than once then. */
const recomputed = /\d+ tokens were cached, not \d+|all turns: \d+ rows of \d+ tokens/;

test("a prompt whose end is not kept", async () => {
  planted.marksMissing = true;
  const lines = await linesOf();
  expect(names(lines)).toEqual(expect.arrayContaining(["cached: resent", "cached: regenerated"]));
  for (const line of lines) expect(line).toMatch(recomputed);
});

test("replies after which nothing is computed", async () => {
  planted.passesMissing = true;
  const lines = await linesOf();
  expect(names(lines)).toContain("cached: turn 2");
  for (const line of lines) expect(line).toMatch(recomputed);
});

test("a count of cached tokens that is one too low", async () => {
  planted.countsOff = true;
  const lines = await linesOf();
  expect(names(lines)).toContain("cached: turn 2");
  for (const line of lines.filter((each) => each.startsWith("cached"))) {
    expect(line).toMatch(/\d+ rows were computed for \d+ tokens/);
  }
});
