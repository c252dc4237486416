/**
 * The prefixes under which a text model's tensors and modules stand, longest first, and what a name
 * under each begins with in our own paths (MLX, Hugging Face wrapper, Hugging Face flat).
 */
const prefixes: readonly (readonly [string, string])[] = [
  ["language_model.model.", ""],
  ["model.language_model.", ""],
  ["language_model.lm_head", "lm_head"],
  ["lm_head", "lm_head"],
  ["model.", ""],
];

/** Vision towers and draft heads, which a text model leaves alone. */
const ignored = /^(?:model\.)?(?:language_model\.)?(?:visual|vision_tower|vision_model|mtp)\./;

/**
 * A tensor's or module's name without the checkpoint's prefix, e.g. `layers.0.mlp.up_proj.weight`.
 * Null for what is no part of the text model.
 */
export function bareName(name: string): string | null {
  if (ignored.test(name)) return null;
  for (const [prefix, replacement] of prefixes) {
    if (name.startsWith(prefix)) return replacement + name.slice(prefix.length);
  }
  return null;
}
