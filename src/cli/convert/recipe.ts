import { InvalidArgumentError } from "commander";
import { bitsAllowed } from "../../weights/affine.ts";
import type { ModuleBits } from "../../weights/convert-recipe.ts";

/** One `PATTERN=BITS` more. */
export function moduleBits(text: string, before: readonly ModuleBits[] = []): ModuleBits[] {
  const [, pattern, value] = /^([\w.*]+)=(\w+)$/.exec(text) ?? [];
  const bits = value === "keep" ? null : bitsAllowed.find((allowed) => String(allowed) === value);
  if (pattern === undefined || bits === undefined) {
    throw new InvalidArgumentError(
      `It must be modules and bits, such as lm_head=8, layers.0.*=6 or *.in_proj_a=keep.`,
    );
  }
  return [...before, { pattern, bits }];
}
