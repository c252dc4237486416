import { cpus } from "node:os";
import { systemClock } from "../../clock.ts";
import type { Engine } from "../../engine.ts";
import { type OpenOptions, openEngine } from "../../node.ts";
import type { Reply } from "../../stream.ts";
import { rounded, type Spread, spread } from "./spread.ts";

const replyTokens = 256;

/** Some equal streams at once, beside one alone. */
export interface StreamsCaseReport {
  readonly streams: number;
  readonly drafted: boolean;
  /** Whether each reply is the one that a stream alone has. */
  readonly equal: boolean;
  /** All tokens over the time from the first request to the last token. */
  readonly tokens_per_second: Spread;
  /** Of this speed over that of one plain stream, medians. */
  readonly of_one_plain: number;
}

export interface StreamsBenchReport {
  readonly bench: "streams";
  readonly model: string;
  readonly backend: string;
  readonly cpu: string;
  readonly cores: number;
  readonly node: string;
  readonly repeats: number;
  readonly cases: readonly StreamsCaseReport[];
}

/**
 * Measures equal streams that share their rounds, in turns with fewer of them: powers of two up to
 * `streams`, plain and drafted. Those of one measurement share their prompt through the cache, as equal
 * streams do; each measurement has a prompt of its own.
 */
export async function benchStreams(
  model: string,
  options: OpenOptions,
  streams: number,
  repeats: number,
): Promise<StreamsBenchReport> {
  const sized = { ...options, parallel: streams };
  await using plain = await openEngine(model, { ...sized, drafts: false });
  await using drafted = await openEngine(model, sized);
  const cases = [plain, drafted].flatMap((engine) =>
    countsUpTo(streams).map((count) => ({ engine, count, speeds: [] as number[] })),
  );
  const different = new Set<object>();
  let number = 0;
  for (let repeat = 0; repeat <= repeats; repeat++) {
    for (const each of cases) {
      const prompt = `Write story ${number++} with a fox and a bell. The hero is Nina.`;
      const { replies, ms } = await together(each.engine, each.count, prompt);
      const alone = await plain.complete({ ...requestOf(prompt), cachePrompt: false }).result;
      if (replies.some(({ tokenSha }) => tokenSha !== alone.tokenSha)) different.add(each);
      // The first round of all compiles and warms.
      if (repeat > 0) each.speeds.push((1000 * each.count * replyTokens) / ms);
    }
  }
  const onePlain = spread(cases[0]!.speeds).median;
  const { backend } = plain.info;
  return {
    bench: "streams",
    model: plain.info.model,
    backend: `${backend.name}: ${backend.device}; ${backend.arithmetic}`,
    cpu: cpus()[0]?.model ?? "unknown",
    cores: cpus().length,
    node: process.version,
    repeats,
    cases: cases.map((each) => {
      const speed = spread(each.speeds);
      return {
        streams: each.count,
        drafted: each.engine === drafted,
        equal: !different.has(each),
        tokens_per_second: speed,
        of_one_plain: rounded(speed.median / onePlain),
      };
    }),
  };
}

const requestOf = (prompt: string) => ({
  prompt,
  maxTokens: replyTokens,
  temperature: 0,
  ignoreEos: true,
});

/** Powers of two, and the most. */
export const countsUpTo = (most: number): number[] => {
  const counts: number[] = [];
  for (let count = 1; count < most; count *= 2) counts.push(count);
  return [...counts, most];
};

async function together(
  engine: Engine,
  count: number,
  prompt: string,
): Promise<{ readonly replies: readonly Reply[]; readonly ms: number }> {
  const startMs = systemClock.nowMs();
  const streams = Array.from({ length: count }, () => engine.complete(requestOf(prompt)));
  const replies = await Promise.all(streams.map(({ result }) => result));
  return { replies, ms: systemClock.nowMs() - startMs };
}
