import { InvalidArgumentError } from "commander";
import { InputError } from "../errors.ts";
import type { TokenId } from "../ids.ts";
import { plainSampling, resolveSampling, type SamplingFields } from "../sampling/params.ts";
import { StopMatcher } from "../text/stop-strings.ts";

/*
 * Flags' values. Each function takes the whole text or refuses it, so that `--top-k 1e9x` is never
 * read as 1; Commander's message around ours names the flag and the value.
 */

const wholePattern = /^[+-]?\d+$/;
const decimalPattern = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

function refuse(rule: string): never {
  throw new InvalidArgumentError(`It must be ${rule}.`);
}

/** A whole number from `min` to `max`. */
export function wholeNumber(min: number, max: number): (text: string) => number {
  const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`;
  return (text) => {
    const value = wholePattern.test(text) ? Number(text) : Number.NaN;
    return value >= min && value <= max ? value : refuse(`a whole number ${range}`);
  };
}

/** One of a few numbers. */
export function oneOf<T extends number>(allowed: readonly T[]): (text: string) => T {
  return (text) => {
    const value = wholePattern.test(text) ? Number(text) : Number.NaN;
    const found = allowed.find((each) => each === value);
    return found ?? refuse(`${allowed.slice(0, -1).join(", ")} or ${allowed.at(-1)}`);
  };
}

/** A size in GiB, 0 or more, as bytes. */
export function gibValue(text: string): number {
  const value = decimalPattern.test(text) ? Number(text) * 2 ** 30 : Number.NaN;
  return value >= 0 && Number.isFinite(value)
    ? Math.round(value)
    : refuse("a number of at least 0");
}

/** A part of 1 that leaves something of it. */
export function shareValue(text: string): number {
  const value = decimalPattern.test(text) ? Number(text) : Number.NaN;
  return value >= 0 && value < 1 ? value : refuse("a number from 0 to below 1");
}

/** A sampling value, within the range that requests have too. */
export function samplingValue(field: Exclude<keyof SamplingFields, "seed" | "logit_bias">) {
  return (text: string): number => {
    const value = Number(text);
    if (!decimalPattern.test(text) || !Number.isFinite(value)) refuse("a finite number");
    explained(() => resolveSampling({ [field]: value }, plainSampling));
    return value;
  };
}

/** 64 bits, signed or unsigned. */
export function seedValue(text: string): bigint {
  const value = wholePattern.test(text) ? BigInt(text.replace(/^\+/, "")) : null;
  if (value !== null && value >= -(2n ** 63n) && value < 2n ** 64n) return value;
  return refuse("a whole number from -2^63 to 2^64 - 1");
}

/** One stop string more. */
export function stopValue(text: string, before: readonly string[]): readonly string[] {
  const stops = [...before, text];
  explained(() => new StopMatcher(stops));
  return stops;
}

/** A JSON list of token ids. Whether the model has them is known only later. */
export function idsValue(text: string): readonly TokenId[] {
  const rule = "a JSON list of token ids, such as [1,2]";
  const value = parsed(text);
  if (!Array.isArray(value)) return refuse(rule);
  if (value.length === 0) return refuse(`${rule}; this one is empty`);
  const ids: readonly unknown[] = value;
  const wrong = ids.filter((id) => !isTokenId(id));
  if (wrong.length > 0) refuse(`${rule}; ${JSON.stringify(wrong[0])} is no token id`);
  return ids.filter(isTokenId);
}

const isTokenId = (id: unknown): id is TokenId =>
  typeof id === "number" && Number.isSafeInteger(id) && id >= 0;

/** The JSON value of a text; null where it is none. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Passes on what the request's own check says. */
function explained(check: () => unknown): void {
  try {
    check();
  } catch (error) {
    if (error instanceof InputError) throw new InvalidArgumentError(error.message);
    throw error;
  }
}
