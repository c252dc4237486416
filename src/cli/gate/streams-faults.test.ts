import { beforeEach, expect, test, vi } from "vitest";
import type { Backend, HeldState, PassHandle, PassResult } from "../../backend/backend.ts";
import type { PageId, SlotId } from "../../ids.ts";
import type { Plan, Segment } from "../../model/plan.ts";
import { failedOf, hashes } from "./drafted.cases.ts";
import { faulty } from "./faulty.cases.ts";
import { runStreams, tinyStreams } from "./streams.cases.ts";

/** What is wrong above the backend. */
const planted = vi.hoisted(() => ({ oneByOne: false, forgotten: false }));

beforeEach(() => {
  planted.oneByOne = false;
  planted.forgotten = false;
});

vi.mock(import("../../rounds/schedule.ts"), async (original) => {
  const schedule = await original();
  const nextToAdmit: typeof schedule.nextToAdmit = (streams) => {
    const busy = planted.oneByOne && streams.some(({ slot }) => slot !== null);
    return busy ? null : schedule.nextToAdmit(streams);
  };
  return { ...schedule, nextToAdmit };
});

vi.mock(import("../../rounds/stream-memory.ts"), async (original) => {
  const { StreamMemory } = await original();
  class ForgetfulMemory extends StreamMemory {
    /** A parked reply loses its last token, which is drawn again. */
    override async park(...[stream]: Parameters<InstanceType<typeof StreamMemory>["park"]>) {
      if (planted.forgotten && stream.replyTokens > 0) stream.ids.pop();
      await super.park(stream);
    }
  }
  return { StreamMemory: ForgetfulMemory };
});

/** Enough for the coverage to have its say. */
const cells = 64;

/** Failed cells but the coverage, which may have its own say. */
async function linesOf(fault: (backend: Backend) => Partial<Backend>): Promise<string[]> {
  const report = await runStreams(faulty(hashes, fault), tinyStreams, cells);
  return failedOf(report).filter((line) => !line.startsWith("coverage"));
}

const noFault = (): Partial<Backend> => ({});
/** The fake refuses a draft behind a context that isn't the stream's. */
const refused = "a draft whose context is wrong";
const difference = new RegExp(
  `: stream \\d .*: (the logits of token \\d+ differ|token \\d+ is \\d+, not \\d+|the state differs|.*${refused})`,
);

const expectDifferences = (lines: readonly string[], least: number) => {
  expect(lines.length).toBeGreaterThanOrEqual(least);
  for (const line of lines) expect(line).toMatch(difference);
};

/** How many streams a line tells of. */
const streamsIn = (line: string): number => line.match(/stream \d+ \(/g)!.length;

const swapped = <T>([first, second, ...others]: readonly T[]): T[] => [second!, first!, ...others];

test("the KV pages of two streams that are mixed up, in one round", async () => {
  let rounds = 0;
  const mix = ({ segments, ...plan }: Plan): Plan => {
    const pages = swapped(segments.map((segment) => segment.pages));
    return { ...plan, segments: segments.map((one, at) => ({ ...one, pages: pages[at]! })) };
  };
  const alike = ([first, second]: readonly Segment[]) =>
    second !== undefined && first!.pages.length === second.pages.length;
  const lines = await linesOf((backend) => ({
    verify: (plan) => backend.verify(alike(plan.segments) && ++rounds === 30 ? mix(plan) : plan),
  }));
  expect(lines.length).toBe(1);
  expect(lines[0]).toMatch(difference);
});

test("draws that another stream is given, in one round", async () => {
  let rounds = 0;
  const mixed = new Set<PassHandle>();
  const lines = await linesOf((backend) => ({
    verify: (plan) => {
      const handle = backend.verify(plan);
      const rows = plan.segments.map((segment) => segment.rows);
      if (rows.length > 1 && rows[0] === 1 && rows[1] === 1 && ++rounds === 30) mixed.add(handle);
      return handle;
    },
    read: async (handle): Promise<PassResult> => {
      const result = await backend.read(handle);
      return mixed.has(handle) ? { ...result, draws: swapped(result.draws) } : result;
    },
  }));
  expect(lines.length).toBe(1);
  expect(lines[0]).toMatch(difference);
  expect(streamsIn(lines[0]!)).toBe(2);
});

test("the second window of a round that is not kept", async () => {
  const lines = await linesOf((backend) => ({
    keep: (handle, paths) => {
      backend.keep(
        handle,
        paths.map((path, at) => (at === 1 ? [] : path)),
      );
    },
  }));
  expectDifferences(lines, 8);
  for (const line of lines) expect(line).toMatch(/, drafted/);
});

test("a slot that its next stream finds as it was left", async () => {
  const known = new Set<SlotId>();
  const lines = await linesOf((backend) => ({
    open: (slot) => {
      if (!known.has(slot)) backend.open(slot);
      known.add(slot);
    },
    release: () => {},
  }));
  expectDifferences(lines, 8);
});

/** What a stream resumes is the latest state but its own. */
const otherState = (backend: Backend): Partial<Backend> => {
  const all: HeldState[] = [];
  return {
    hold: async (slot) => {
      const held = await backend.hold(slot);
      all.push(held);
      return held;
    },
    resume: (slot, held) => {
      for (const other of all.toReversed()) {
        if (other === held) continue;
        try {
          backend.resume(slot, other);
          return;
        } catch {
          // It was evicted.
        }
      }
      backend.resume(slot, held);
    },
  };
};

const cachedSetting = /one beginning|one prompt|forks|background|cached/;

test("a cached state of other tokens", async () => {
  const lines = await linesOf(otherState);
  expectDifferences(lines, 8);
  for (const line of lines) expect(line).toMatch(cachedSetting);
});

test("rows of a shared page that are not copied", async () => {
  const lines = await linesOf(() => ({ copyPage: () => {} }));
  expectDifferences(lines, 8);
  for (const line of lines) expect(line).toMatch(cachedSetting);
});

test("a page that is copied over one that others share", async () => {
  const lines = await linesOf((backend) => ({
    copyPage: (from: PageId, to: PageId) => backend.copyPage(to, from),
  }));
  expectDifferences(lines, 8);
  for (const line of lines) expect(line).toMatch(cachedSetting);
});

test("parked streams that lose their last token", async () => {
  planted.forgotten = true;
  const lines = await linesOf(noFault);
  expectDifferences(lines, 4);
  for (const line of lines) expect(line).toMatch(/background|long replies/);
});

test("streams that are served one after the other prove little", async () => {
  planted.oneByOne = true;
  const report = await runStreams(hashes, tinyStreams, cells);
  expect(failedOf(report)).toEqual([expect.stringMatching(/^coverage: no rounds of 8 streams; /)]);
});
