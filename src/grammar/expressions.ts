import { type CodeSet, codeSet } from "./code-points.ts";

/** What a text may be: the one form in which all kinds of grammars are written down. */
export type Expression =
  | { readonly kind: "text"; readonly text: string }
  /** One character of a set. */
  | { readonly kind: "set"; readonly set: CodeSet }
  | { readonly kind: "sequence"; readonly parts: readonly Expression[] }
  /** One of these; none of them: nothing can be written here. */
  | { readonly kind: "either"; readonly options: readonly Expression[] }
  /** So often; `most` is null where there is no bound. */
  | {
      readonly kind: "repeat";
      readonly body: Expression;
      readonly least: number;
      readonly most: number | null;
    }
  | RuleName;

/** What the rule of that name says. */
export interface RuleName {
  readonly kind: "rule";
  readonly name: string;
}

/** Rules by name. They may name one another, in any order. */
export type Rules = Map<string, Expression>;

export const text = (written: string): Expression => ({ kind: "text", text: written });
export const oneOf = (set: CodeSet): Expression => ({ kind: "set", set });
export const between = (first: string, last: string): Expression =>
  oneOf(codeSet([[first.codePointAt(0)!, last.codePointAt(0)!]]));
export const sequence = (...parts: Expression[]): Expression => ({ kind: "sequence", parts });
export const either = (...options: Expression[]): Expression => ({ kind: "either", options });
export const repeat = (body: Expression, least: number, most: number | null): Expression => ({
  kind: "repeat",
  body,
  least,
  most,
});
export const optional = (body: Expression): Expression => repeat(body, 0, 1);
export const many = (body: Expression): Expression => repeat(body, 0, null);
export const rule = (name: string): RuleName => ({ kind: "rule", name });
export const nothing: Expression = { kind: "either", options: [] };

/** One of some texts. Those that begin alike share their beginnings. */
export function texts(written: Iterable<string>): Expression {
  return branches([...new Set(written)].sort(), 0);
}

/** @param sorted texts that are equal up to `from` */
function branches(sorted: readonly string[], from: number): Expression {
  if (sorted.length === 1) return text(sorted[0]!.slice(from));
  const first = sorted[0] ?? "";
  const last = sorted.at(-1) ?? "";
  let shared = from;
  while (shared < first.length && first[shared] === last[shared]) shared++;
  // Half a character can't stand alone.
  if (isLowHalf(first.charCodeAt(shared)) || isLowHalf(last.charCodeAt(shared))) shared--;
  const options: Expression[] = [];
  for (let start = 0; start < sorted.length; ) {
    const letter = letterAt(sorted[start]!, shared);
    let end = start + 1;
    while (end < sorted.length && letterAt(sorted[end]!, shared) === letter) end++;
    const some = sorted.slice(start, end);
    options.push(letter === "" ? text("") : branches(some, shared));
    start = end;
  }
  return sequence(text(first.slice(from, shared)), either(...options));
}

const isLowHalf = (unit: number): boolean => unit >= 0xdc00 && unit <= 0xdfff;

const letterAt = (written: string, at: number): string =>
  at < written.length ? String.fromCodePoint(written.codePointAt(at)!) : "";
