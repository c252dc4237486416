import { type Spread, spread } from "./spread.ts";

/** What a case measures, once. */
export interface Measured {
  /** Of all its replies together; of a prompt, its own tokens. */
  readonly tokensPerSecond: number;
  /** ms from the request to its first event; of several requests, of the last one. */
  readonly firstTokenMs: number;
  /** Of its replies. */
  readonly tokens: number;
  /** Passes that brought the tokens after the first of each reply. */
  readonly rounds: number;
  readonly tokenShas: readonly string[];
}

/** Something to measure on a server. */
export interface ServeCase {
  measure(url: string): Promise<Measured>;
}

/** The servers that are measured. */
export interface ServeUrls {
  readonly own: string;
  /** Of the build that this one is measured against. */
  readonly other: string | null;
}

/** All measurements of a case; those of two builds were taken in turns: other, own, own, other. */
export interface Turns {
  readonly own: readonly Measured[];
  readonly other: readonly Measured[];
}

/** Two builds side by side. */
export interface Paired {
  readonly tokens_per_second: Spread;
  /** Of this build's speed over that one's, by four turns. */
  readonly percent: Spread;
  /** Of that one's second turn over its first: what a difference of nothing looks like. */
  readonly self_percent: Spread;
  /** Whether both gave the same tokens. */
  readonly equal: boolean;
}

/**
 * Measures every case in turns with the others, backwards every second time. The first time doesn't
 * count: it compiles and warms.
 */
export async function takeTurns<Case extends ServeCase>(
  cases: readonly Case[],
  urls: ServeUrls,
  repeats: number,
  onRepeat: (repeat: number) => void,
): Promise<ReadonlyMap<Case, Turns>> {
  const taken = new Map(cases.map((each) => [each, { own: [], other: [] } as Collected]));
  for (let repeat = 0; repeat <= repeats; repeat++) {
    onRepeat(repeat);
    for (const each of repeat % 2 === 0 ? cases : cases.toReversed()) {
      for (const side of urls.other === null ? onlyOwn : both) {
        const measured = await each.measure(urls[side]!);
        if (repeat > 0) taken.get(each)![side].push(measured);
      }
    }
  }
  return taken;
}

type Collected = Record<keyof ServeUrls, Measured[]>;

const onlyOwn = ["own"] as const;
const both = ["other", "own", "own", "other"] as const;

export const speedOf = (measured: readonly Measured[]): Spread =>
  spread(measured.map(({ tokensPerSecond }) => tokensPerSecond));

/** Whether all replies are what they were at first. */
export const isSteady = (measured: readonly Measured[], expected: readonly string[]): boolean =>
  measured.every(({ tokenShas }) => tokenShas.join() === expected.join());

/** Null where there is no other build. */
export function pairedOf({ own, other }: Turns): Paired | null {
  if (other.length === 0) return null;
  const percents: number[] = [];
  const selves: number[] = [];
  for (let at = 0; at + 1 < own.length; at += 2) {
    const [first, second] = pairAt(other, at);
    const [ownFirst, ownSecond] = pairAt(own, at);
    percents.push((100 * (ownFirst + ownSecond)) / (first + second));
    selves.push((100 * second) / first);
  }
  return {
    tokens_per_second: speedOf(other),
    percent: spread(percents),
    self_percent: spread(selves),
    equal: isSteady([...own, ...other], own[0]!.tokenShas),
  };
}

/** Speeds of two turns of the same four. */
const pairAt = (measured: readonly Measured[], at: number): [number, number] => [
  measured[at]!.tokensPerSecond,
  measured[at + 1]!.tokensPerSecond,
];
