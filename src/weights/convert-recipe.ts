import { InputError } from "../errors.ts";
import type { AffineFormat } from "./affine.ts";
import type { AffineBits } from "./weights.ts";

/** How the matrices of a model are to be stored. */
export interface Recipe extends AffineFormat {
  /** MLX's mixed recipes: so many bits for the head, and for `v_proj` and `down_proj` of some layers. */
  readonly mixedBits?: AffineBits;
  /** Modules of other widths. Of several that fit a module, the last counts. */
  readonly modules?: readonly ModuleBits[];
}

export interface ModuleBits {
  /** A path such as `layers.0.mlp.down_proj`; a `*` stands for any characters. */
  readonly pattern: string;
  /** Null: as the source stores it. */
  readonly bits: AffineBits | null;
}

/**
 * The wanted format of each module; null: as the source stores it.
 *
 * @throws InputError for a pattern that fits no module
 */
export function moduleFormats(
  paths: readonly string[],
  { bits, groupSize, mixedBits, modules = [] }: Recipe,
): ReadonlyMap<string, AffineFormat | null> {
  const wide = mixedBits === undefined ? new Set<string>() : widerModules(paths);
  const formats = new Map<string, AffineFormat | null>();
  for (const path of paths) {
    formats.set(path, { bits: wide.has(path) ? (mixedBits ?? bits) : bits, groupSize });
  }
  for (const { pattern, bits: own } of modules) {
    const fits = patternTest(pattern);
    const found = paths.filter((path) => fits(path));
    if (found.length === 0) {
      const examples = `${paths[0]} or ${paths.at(-1)}`;
      throw new InputError(
        `no module is called ${pattern}; they are called ${examples}`,
        "modules",
      );
    }
    for (const path of found) formats.set(path, own === null ? null : { bits: own, groupSize });
  }
  return formats;
}

/**
 * The head, or the embedding that serves as it; and `v_proj` and `down_proj` in the first and last
 * eighth of the layers and in every third between (mlx-lm, `convert.py`).
 */
function widerModules(paths: readonly string[]): ReadonlySet<string> {
  const head = paths.includes("lm_head") ? "lm_head" : "embed_tokens";
  const layerOf = (path: string) => Number(/^layers\.(\d+)\./.exec(path)?.[1] ?? -1);
  const layers = 1 + Math.max(...paths.map(layerOf));
  const eighth = Math.floor(layers / 8);
  const isWide = (path: string) => {
    if (path === head) return true;
    if (!/\.(v_proj|down_proj)$/.test(path)) return false;
    const layer = layerOf(path);
    const outer = layer < eighth || layer >= Math.floor((7 * layers) / 8);
    return outer || (layer - eighth) % 3 === 2;
  };
  return new Set(paths.filter(isWide));
}

function patternTest(pattern: string): (path: string) => boolean {
  const parts = pattern.split("*").map((part) => part.replace(/[^\w]/g, "\\$&"));
  const whole = new RegExp(`^${parts.join(".*")}$`);
  return (path) => whole.test(path);
}
