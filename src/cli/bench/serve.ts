import { cpus } from "node:os";
import type { OpenOptions } from "../../node.ts";
import { optionArgs } from "../option-args.ts";
import { ownProgram, ServerProcess } from "../own-process.ts";
import { healthOf } from "../reply-client.ts";
import { replyKinds } from "../reply-kinds.ts";
import { aloneShas, PrefillCase, ReplyCase, StreamsCase } from "./serve-cases.ts";
import {
  caseReport,
  replyReport,
  type ServeBenchReport,
  type Solos,
  streamsReport,
} from "./serve-report.ts";
import { speedOf, takeTurns } from "./serve-turns.ts";
import { countsUpTo } from "./streams.ts";

export interface ServeBenchOptions {
  /** As `serve` of both builds takes it. */
  readonly model: string;
  readonly open: OpenOptions;
  readonly repeats: number;
  /** Of a reply, at most. */
  readonly tokens: number;
  /** At once, at most. */
  readonly streams: number;
  /** Lengths of prompts. */
  readonly prefill: readonly number[];
  /** Whether streams are compared with the same replies alone, and with the same alone and plain. */
  readonly alone: boolean;
  readonly serial: boolean;
  /** The command line of another build, measured in turns with this one's. */
  readonly against: string | null;
  readonly onRepeat: (repeat: number) => void;
}

/** Measures a server of its own, in another process, as its clients see it. */
export async function benchServe(options: ServeBenchOptions): Promise<ServeBenchReport> {
  const { model, open, streams, tokens, against, repeats, onRepeat } = options;
  const args = [model, ...optionArgs(open), "--parallel", `${streams}`];
  await using own = await ServerProcess.start(ownProgram, args);
  await using other = against === null ? null : await ServerProcess.start(against, args);
  const health = await healthOf(own.url);
  const fits = (length: number) => length < health.context_length;
  const replies = replyKinds.flatMap((kind) => [
    new ReplyCase(kind, false, tokens),
    new ReplyCase(kind, true, tokens),
  ]);
  const prompts = options.prefill.filter(fits).map((length) => new PrefillCase(length));
  const together = [false, true].flatMap((drafted) =>
    countsUpTo(streams).map((count) => new StreamsCase(count, drafted, tokens)),
  );
  const urls = { own: own.url, other: other?.url ?? null };
  const cases = [...replies, ...prompts, ...together];
  const taken = await takeTurns(cases, urls, repeats, onRepeat);
  const shas = await solosOf(own.url, options);
  const { name, device, arithmetic } = health.backend;
  return {
    bench: "serve",
    model: health.model,
    backend: `${name}: ${device}; ${arithmetic}`,
    cpu: cpus()[0]?.model ?? "unknown",
    cores: cpus().length,
    node: process.version,
    repeats,
    replies: replies.map((each, at) => {
      // The plain one stands before its drafted one.
      const plain = taken.get(replies[at - (at % 2)]!)!.own;
      return replyReport(each, taken.get(each)!, plain);
    }),
    prefill: prompts.map((each) => ({ tokens: each.tokens, ...caseReport(taken.get(each)!) })),
    streams: together.map((each) => {
      const onePlain = speedOf(taken.get(together[0]!)!.own).median;
      return streamsReport(each, taken.get(each)!, onePlain, shas);
    }),
    not_run: options.prefill
      .filter((length) => !fits(length))
      .map((length) => `prefill of ${length}: the context has ${health.context_length} tokens`),
  };
}

async function solosOf(
  url: string,
  { streams, tokens, alone, serial }: ServeBenchOptions,
): Promise<Solos> {
  const plain = alone || serial ? await aloneShas(url, streams, false, tokens) : [];
  const drafted = alone ? await aloneShas(url, streams, true, tokens) : [];
  return { alone: alone ? { plain, drafted } : null, serial: serial ? plain : null };
}
