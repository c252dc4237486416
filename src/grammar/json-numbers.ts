import { shown } from "../json.ts";
import {
  between,
  type Expression,
  either,
  nothing,
  repeat,
  sequence,
  text,
} from "./expressions.ts";
import { integerDigitsMax, type JsonText } from "./json-text.ts";
import { fail, type SchemaRecord } from "./schema-parts.ts";

/** What a number may be; a bound that is null is none. */
export interface NumberRange {
  readonly least: number | null;
  readonly most: number | null;
  /** Whether it must be above `least`, and below `most`. */
  readonly above: boolean;
  readonly below: boolean;
  readonly integer: boolean;
}

/** Steps to write a number's bounds down. */
const boundedSteps = 50;
/** Digits that all doubles tell apart. */
const exactDigits = 15;
const fractionDigitsMax = 9;
/** By the lowest and the highest: bounds ask for the same ones again and again. */
const digits = Array.from({ length: 10 }, (_, low) =>
  Array.from({ length: 10 }, (_, high) => between(`${low}`, `${high}`)),
);
const digit = digits[0]![9]!;

/** Decimals in a range, without exponent: none that a reader would round out of it. */
export function numbersIn({ least, most, above, below, integer }: NumberRange): Expression {
  const size = Math.max(Math.abs(least ?? 0), Math.abs(most ?? 0));
  const wholeDigits = toUnits(size, 0, Math.ceil).toString().length;
  // What is next to an excluded bound must not be rounded to it.
  const exact = above || below ? Math.max(0, exactDigits - wholeDigits) : fractionDigitsMax;
  const fraction = integer ? 0 : Math.min(fractionDigitsMax, exact);
  const unbounded = 10n ** BigInt(integerDigitsMax + fraction) - 1n;
  const up = (value: number) =>
    above ? toUnits(value, fraction, Math.floor) + 1n : toUnits(value, fraction, Math.ceil);
  const down = (value: number) =>
    below ? toUnits(value, fraction, Math.ceil) - 1n : toUnits(value, fraction, Math.floor);
  const from = least === null ? -unbounded : bounded(up(least), unbounded);
  const to = most === null ? unbounded : bounded(down(most), unbounded);
  const negatives = to < 0n ? -to : 1n;
  return either(
    magnitudes(from > 0n ? from : 0n, to, fraction),
    sequence(text("-"), magnitudes(negatives, -from, fraction)),
  );
}

const bounded = (value: bigint, most: bigint): bigint =>
  value > most ? most : value < -most ? -most : value;

/** A number as units of its last digit behind the point, exactly, rounded where it has more. */
function toUnits(value: number, fraction: number, round: (value: number) => number): bigint {
  const [mantissa, exponent = "0"] = value.toString().split("e");
  const [whole, behind = ""] = mantissa!.split(".");
  const shift = Number(exponent) + fraction - behind.length;
  const digits = BigInt(whole! + behind);
  if (shift >= 0) return digits * 10n ** BigInt(shift);
  const scale = 10n ** BigInt(-shift);
  const towardZero = digits / scale;
  if (towardZero * scale === digits) return towardZero;
  return towardZero + BigInt(round(digits < 0n ? -0.5 : 0.5));
}

/** Numbers from 0 on, in units of the last of so many digits behind the point, or with fewer. */
function magnitudes(from: bigint, to: bigint, fraction: number): Expression {
  if (from > to) return nothing;
  const scale = 10n ** BigInt(fraction);
  const behind = (value: bigint) => (scale + (value % scale)).toString().slice(1);
  const first = from / scale;
  const last = to / scale;
  const zeros = behind(0n);
  const nines = behind(scale - 1n);
  if (first === last) return sequence(text(`${first}`), fractions(behind(from), behind(to)));
  return either(
    sequence(text(`${first}`), fractions(behind(from), nines)),
    sequence(wholes(first + 1n, last - 1n), fractions(zeros, nines)),
    sequence(text(`${last}`), fractions(zeros, behind(to))),
  );
}

function wholes(from: bigint, to: bigint): Expression {
  const options: Expression[] = [];
  for (let low = from; low <= to; ) {
    const longest = 10n ** BigInt(low.toString().length) - 1n;
    const high = longest < to ? longest : to;
    options.push(digitsBetween(low.toString(), high.toString(), false));
    low = high + 1n;
  }
  return either(...options);
}

/** A point with digits, or neither, where zeros behind the last digit change nothing. */
function fractions(from: string, to: string): Expression {
  const none = isZero(from) ? text("") : nothing;
  return from === "" ? none : either(none, sequence(text("."), digitsBetween(from, to, true)));
}

/** @param short whether zeros at the end may be left out */
function digitsBetween(from: string, to: string, short: boolean): Expression {
  if (from === "") return text("");
  const { length } = from;
  if (isZero(from) && /^9*$/.test(to)) return repeat(digit, short ? 1 : length, length);
  const rest = length - 1;
  const tail = (low: string, high: string) =>
    either(short && isZero(low) ? text("") : nothing, digitsBetween(low, high, short));
  const [low, high] = [Number(from[0]), Number(to[0])];
  const [lowTail, highTail] = [from.slice(1), to.slice(1)];
  if (low === high) return sequence(text(`${low}`), tail(lowTail, highTail));
  const inner = low + 1 < high ? digits[low + 1]![high - 1]! : nothing;
  return either(
    sequence(text(`${low}`), tail(lowTail, "9".repeat(rest))),
    sequence(inner, repeat(digit, short ? 0 : rest, rest)),
    sequence(text(`${high}`), tail("0".repeat(rest), highTail)),
  );
}

const isZero = (digits: string): boolean => /^0*$/.test(digits);

/**
 * Numbers of a schema.
 * @throws InputError
 */
export function numberOf(
  schema: SchemaRecord,
  at: string,
  integer: boolean,
  json: JsonText,
): Expression {
  const [least, above] = boundOf(schema, "minimum", "exclusiveMinimum", Math.max, at);
  const [most, below] = boundOf(schema, "maximum", "exclusiveMaximum", Math.min, at);
  if (least === null && most === null) return integer ? json.integer : json.number;
  json.work.spend(boundedSteps);
  return numbersIn({ least, most, above, below, integer });
}

/** The narrower of two bounds, and whether it is excluded itself. Older schemas say that by a flag. */
function boundOf(
  schema: SchemaRecord,
  keyword: string,
  exclusive: string,
  narrower: (a: number, b: number) => number,
  at: string,
): [bound: number | null, excluded: boolean] {
  const closed = schema[keyword];
  const open = schema[exclusive];
  if (typeof open === "boolean") return [finite(closed, keyword, at), open];
  const [bound, excluded] = [finite(closed, keyword, at), finite(open, exclusive, at)];
  if (excluded === null) return [bound, false];
  if (bound === null) return [excluded, true];
  const narrow = narrower(bound, excluded);
  return [narrow, narrow === excluded];
}

function finite(value: unknown, keyword: string, at: string): number | null {
  if (value === undefined) return null;
  if (typeof value === "number" && Number.isFinite(value)) return value;
  return fail(at, `${keyword} must be a number, not ${shown(value)}`);
}
