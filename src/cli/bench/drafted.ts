import { cpus } from "node:os";
import type { Engine } from "../../engine.ts";
import { InvariantError } from "../../errors.ts";
import { type OpenOptions, openEngine } from "../../node.ts";
import type { Reply } from "../../stream.ts";
import { replyKinds } from "../reply-kinds.ts";
import { single } from "./single.ts";
import { rounded, type Spread, spread } from "./spread.ts";

/** A reply to time. */
interface DraftedCase {
  readonly name: string;
  readonly prompt: string;
  readonly temperature: number;
  readonly maxTokens: number;
  readonly ignoreEos?: true;
}

const cases: readonly DraftedCase[] = [
  ...replyKinds.map(({ name, asked }) => ({ name, prompt: asked, temperature: 0, maxTokens: 128 })),
  // So hot that hardly anything can be foreseen.
  { name: "noise", prompt: "Go on.", temperature: 8, maxTokens: 256, ignoreEos: true },
];

export interface DraftedCaseReport {
  readonly name: string;
  readonly tokens: number;
  /** Whether the two replies are the same, token for token and in their final states. */
  readonly equal: boolean;
  /** Decoding alone, of an engine without drafts and of one with them, in turns A B B A. */
  readonly plain_tokens_per_second: Spread;
  readonly drafted_tokens_per_second: Spread;
  /** drafted over plain, medians. */
  readonly ratio: number;
  readonly rounds: number;
  readonly tokens_per_round: number | null;
  readonly drafted: number;
  readonly accepted: number;
  readonly by_drafter: Reply["speculative"]["byDrafter"];
}

export interface DraftedBenchReport {
  readonly bench: "drafted";
  readonly model: string;
  readonly backend: string;
  readonly cpu: string;
  readonly cores: number;
  readonly node: string;
  readonly repeats: number;
  readonly cases: readonly DraftedCaseReport[];
}

/** Measures replies with drafts beside the same without, in one run. */
export async function benchDrafted(
  model: string,
  options: OpenOptions,
  repeats: number,
  onCase: (result: DraftedCaseReport) => void,
): Promise<DraftedBenchReport> {
  await using plain = await openEngine(model, { ...options, ...single, drafts: false });
  await using drafted = await openEngine(model, { ...options, ...single });
  const results: DraftedCaseReport[] = [];
  for (const each of cases) {
    results.push(await measureCase(plain, drafted, each, repeats));
    onCase(results.at(-1)!);
  }
  const { backend } = drafted.info;
  return {
    bench: "drafted",
    model: drafted.info.model,
    backend: `${backend.name}: ${backend.device}; ${backend.arithmetic}`,
    cpu: cpus()[0]?.model ?? "unknown",
    cores: cpus().length,
    node: process.version,
    repeats,
    cases: results,
  };
}

async function measureCase(
  plain: Engine,
  drafted: Engine,
  each: DraftedCase,
  repeats: number,
): Promise<DraftedCaseReport> {
  const engines = { A: plain, B: drafted };
  const speeds: Record<"A" | "B", number[]> = { A: [], B: [] };
  const expected = await reply(plain, each);
  const found = await reply(drafted, each);
  for (let repeat = 0; repeat < repeats; repeat++) {
    for (const turn of ["A", "B", "B", "A"] as const) {
      speeds[turn].push(tokensPerSecond(await reply(engines[turn], each)));
    }
  }
  const [plainSpeed, draftedSpeed] = [spread(speeds.A), spread(speeds.B)];
  const { rounds, tokensPerRound, drafted: proposed, accepted, byDrafter } = found.speculative;
  return {
    name: each.name,
    tokens: found.ids.length,
    equal: found.tokenSha === expected.tokenSha && found.stateSha === expected.stateSha,
    plain_tokens_per_second: plainSpeed,
    drafted_tokens_per_second: draftedSpeed,
    ratio: rounded(draftedSpeed.median / plainSpeed.median),
    rounds,
    tokens_per_round: tokensPerRound === null ? null : rounded(tokensPerRound),
    drafted: proposed,
    accepted,
    by_drafter: byDrafter,
  };
}

function reply(engine: Engine, each: DraftedCase): Promise<Reply> {
  const { prompt, temperature, maxTokens, ignoreEos = false } = each;
  const messages = [{ role: "user", content: prompt }];
  const sampling = { temperature, top_k: 0, top_p: 1, min_p: 0, seed: 1 };
  const request = { maxTokens, ignoreEos, fingerprint: true, ...sampling };
  return engine.chat({ messages, ...request }).result;
}

function tokensPerSecond({ timings, ids }: Reply): number {
  if (timings.tokensPerSecond !== null) return timings.tokensPerSecond;
  throw new InvariantError(`a reply of ${ids.length} tokens took no time`);
}
