import type { Expression } from "./expressions.ts";

/** How strings are written. */
export interface StringForm {
  /** Any string. */
  any(): Expression;
  /** @param most null where there is no bound */
  sized(least: number, most: number | null): Expression;
  /** What a regex finds itself in. */
  matching(pattern: string): Expression;
  /** One of these. */
  among(values: readonly string[]): Expression;
}
