import { pagesFor } from "../../state/kv-pages.ts";
import {
  apart,
  type Cast,
  forks,
  marked,
  oneBeginning,
  onePrompt,
  type StreamPrompt,
  someBehind,
} from "./streams-prompts.ts";

/** Tokens of a request, and those that it may come to. */
interface Length {
  readonly promptTokens: number;
  readonly maxTokens: number;
}

/** What streams have in common, and what they must share. */
export interface StreamsSetting {
  readonly name: string;
  /** Of a cell of so many streams. */
  slots(streams: number): number;
  /** States that may be cached, beside all pages; 0: nothing is. */
  readonly states: number;
  /** Whether the first stream's reply is drawn greedily to its end, and the others come after it. */
  readonly opener: boolean;
  /** Whether replies are long enough to outgrow what admission counts on. */
  readonly long: boolean;
  /** Pages of a cell with these streams. */
  pages(lengths: readonly Length[]): number;
  prompts(cast: Cast): Promise<readonly StreamPrompt[]>;
}

/** With room for what stays cached. */
const plenty = {
  slots: (streams: number) => streams,
  states: 64,
  opener: false,
  long: false,
  pages: (lengths: readonly Length[]) => 2 * sum(lengths.map(pagesOf)),
} as const;
/** For half of the streams, and two of the largest. */
const tight = {
  slots: (streams: number) => Math.ceil(streams / 2),
  pages: (lengths: readonly Length[]) => 2 * Math.max(...lengths.map(pagesOf)),
} as const;

/** By how many tokens each stream may grow, as admission sees it, beside the prompt. */
const growthTokens = 512;
/** A reply of so many outgrows that. */
export const longReplyTokens: number = growthTokens + 128;

function pagesOf({ promptTokens, maxTokens }: Length): number {
  return pagesFor(promptTokens + maxTokens);
}

const sum = (counts: readonly number[]): number => counts.reduce((all, count) => all + count, 0);

export const streamsSettings: readonly StreamsSetting[] = [
  { ...plenty, name: "prompts apart", states: 0, prompts: apart },
  { ...plenty, ...tight, name: "few slots and pages", states: 0, prompts: apart },
  { ...plenty, name: "one beginning", prompts: oneBeginning },
  { ...plenty, ...tight, name: "one beginning, little memory", states: 2, prompts: oneBeginning },
  { ...plenty, name: "one prompt", prompts: onePrompt },
  { ...plenty, name: "forks", opener: true, prompts: forks },
  { ...plenty, name: "some in the background", prompts: someBehind },
];

/** Replies that are longer than admission counts on, in as many pages as it counts on. */
const outgrown = {
  ...plenty,
  long: true,
  pages: (lengths: readonly Length[]) =>
    sum(lengths.map(({ promptTokens }) => pagesFor(promptTokens + growthTokens))),
};

export const longSettings: readonly StreamsSetting[] = [
  { ...outgrown, name: "long replies, cached", prompts: marked },
  { ...outgrown, name: "long replies", states: 0, prompts: apart },
];
