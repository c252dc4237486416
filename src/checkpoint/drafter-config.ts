import { z } from "zod";
import { CheckpointError } from "../errors.ts";
import { windowRowsMax } from "../limits.ts";
import type { DrafterLayer, DrafterShape } from "../model/drafter-shape.ts";
import {
  type ConfigFields,
  checkMultiple,
  checkPlainLayers,
  fail,
  flag,
  holder,
  type Levels,
  objectField,
  optionalField,
  positive,
  requiredField,
  size,
} from "./config-fields.ts";
import { configFile, readFields } from "./config-file.ts";
import { type QuantizationConfig, readQuantization } from "./config-quantization.ts";
import { drafterKindOf } from "./drafter-kind.ts";
import { readDrafterRope } from "./drafter-rope.ts";
import type { Folder } from "./source.ts";

export interface DrafterConfig {
  readonly shape: DrafterShape;
  /** Layers of the model that it was made for; null where the config doesn't say. */
  readonly targetLayers: number | null;
  /** Null when the checkpoint holds floats alone. */
  readonly quantization: QuantizationConfig | null;
}

const layersMax = 256;
const blockRowsDefault = 16;
/** Of DFlash, which doesn't say how many of a position's tokens are worth a look. */
const candidatesDefault = 16;
const layerId = z.int().min(0).max(4096);

/**
 * Reads the config.json of a DFlash or DFlash2 drafter. What z-lab's code reads from `dflash_config` is
 * taken from there first, then from the top level.
 *
 * @throws CheckpointError naming file, field and value
 */
export async function readDrafterConfig(folder: Folder): Promise<DrafterConfig> {
  const config = await readFields(folder, configFile);
  const kind = drafterKindOf(config);
  if (kind === null) {
    const type = config.fields.get("model_type");
    const what = typeof type === "string" ? `of model_type ${type}` : "of another kind";
    throw new CheckpointError(folder.name, `is a model ${what}, not a DFlash or DFlash2 drafter.`);
  }
  const draft = objectField(config, "dflash_config");
  const levels = [draft, config];
  checkPlainLayers([config]);
  checkNeutral(levels);
  checkMultiple([config], "num_attention_heads", "num_key_value_heads");
  const sizeOf = (name: string) => requiredField([config], name, size);
  const targetLayers = optionalField([config], "num_target_layers", size) ?? null;
  const vocabSize = sizeOf("vocab_size");
  const layers = readLayers(config, draft);
  const base = {
    kind,
    vocabSize,
    hiddenSize: sizeOf("hidden_size"),
    intermediateSize: sizeOf("intermediate_size"),
    layers,
    headCount: sizeOf("num_attention_heads"),
    kvHeadCount: sizeOf("num_key_value_heads"),
    headDim: readHeadDim(config),
    rope: readDrafterRope(config),
    normEps: requiredField([config], "rms_norm_eps", positive),
    featureLayers: readFeatureLayers(config, levels, targetLayers, layers.length),
    blockRows: readBlockRows(levels),
    maskId: readBelow(levels, "mask_token_id", z.int().min(0), vocabSize),
  };
  return {
    shape: { ...base, ...(kind === "dflash2" ? readSecond(levels, base) : firstKind) },
    targetLayers,
    quantization: readQuantization(null, config, modulePath),
  };
}

/** A drafter's modules have no prefix. */
const modulePath = (name: string): string | null =>
  name === "fc" || name.includes(".") ? name : null;

type SecondFields = Pick<DrafterShape, "candidates" | "convolution" | "selector">;

const firstKind: SecondFields = {
  candidates: candidatesDefault,
  convolution: null,
  selector: null,
};

/** What DFlash2 has beyond DFlash. */
function readSecond(
  levels: Levels,
  { hiddenSize, vocabSize }: { readonly hiddenSize: number; readonly vocabSize: number },
): SecondFields {
  const taps = requiredField(levels, "conv_kernel_size", size);
  if (taps !== 2) fail(holder(levels, "conv_kernel_size"), "conv_kernel_size", "must be 2", taps);
  const groupSize = requiredField(levels, "conv_group_size", size);
  if (hiddenSize % groupSize !== 0) {
    const detail = `must divide the hidden_size of ${hiddenSize}`;
    fail(holder(levels, "conv_group_size"), "conv_group_size", detail, groupSize);
  }
  return {
    candidates: readBelow(levels, "selector_top_k", size, vocabSize + 1),
    convolution: { groupSize },
    selector: { rank: requiredField(levels, "selector_rank", size) },
  };
}

/** Refuses what would change embeddings or logits; no drafter of these models asks for it. */
function checkNeutral(levels: Levels): void {
  for (const [name, neutral] of [
    ["output_multiplier", 1],
    ["final_logit_softcapping", 0],
    ["input_embedding_scale", 1],
  ] as const) {
    const value = optionalField(levels, name, z.number()) ?? neutral;
    if (value !== neutral) fail(holder(levels, name), name, "is not supported", value);
  }
}

function readHeadDim(config: ConfigFields): number {
  const headDim = requiredField([config], "head_dim", size);
  if (headDim % 2 !== 0) fail(config, "head_dim", "must be even", headDim);
  return headDim;
}

/**
 * A row of the block sees those behind it too, or not, as `is_causal` or `causal` say; where they don't,
 * not in layers that slide.
 */
function readLayers(config: ConfigFields, draft: ConfigFields | null): DrafterLayer[] {
  const count = requiredField([config], "num_hidden_layers", z.int().min(1).max(layersMax));
  const kind = z.enum(["sliding_attention", "full_attention"]);
  const types = optionalField([config], "layer_types", z.array(kind));
  if (types && types.length !== count) {
    const detail = `must have num_hidden_layers (${count}) entries`;
    fail(config, "layer_types", detail, types.length);
  }
  const causal =
    optionalField([config], "is_causal", flag) ?? optionalField([draft], "causal", flag);
  return Array.from({ length: count }, (_, index) => {
    const slides = types?.[index] === "sliding_attention";
    return { window: slides ? readWindow(config) : null, causal: causal ?? slides };
  });
}

function readWindow(config: ConfigFields): number {
  if (optionalField([config], "use_sliding_window", flag) === false) {
    fail(config, "use_sliding_window", "must be true where layers slide", false);
  }
  return requiredField([config], "sliding_window", size);
}

/** Unless given, as many as the drafter has layers, evenly spaced from 1 to three before the target's end. */
function readFeatureLayers(
  config: ConfigFields,
  levels: Levels,
  targetLayers: number | null,
  count: number,
): number[] {
  const given = optionalField(levels, "target_layer_ids", z.array(layerId).min(1));
  if (given) return given;
  const layers = targetLayers ?? requiredField([config], "num_target_layers", size);
  if (layers < 4) {
    fail(config, "num_target_layers", "must be at least 4 where no target_layer_ids are", layers);
  }
  if (count === 1) return [Math.floor(layers / 2)];
  const place = (index: number) => 1 + (index * (layers - 4)) / (count - 1);
  return Array.from({ length: count }, (_, index) => roundHalfEven(place(index)));
}

/** As Python rounds, whose rule this is. */
function roundHalfEven(value: number): number {
  const low = Math.floor(value);
  const rest = value - low;
  return rest > 0.5 || (rest === 0.5 && low % 2 === 1) ? low + 1 : low;
}

function readBlockRows(levels: Levels): number {
  const rows = optionalField(levels, "block_size", size) ?? blockRowsDefault;
  if (rows >= 2 && rows <= windowRowsMax) return rows;
  return fail(holder(levels, "block_size"), "block_size", `must be 2 to ${windowRowsMax}`, rows);
}

function readBelow(levels: Levels, name: string, type: z.ZodType<number>, end: number): number {
  const value = requiredField(levels, name, type);
  if (value < end) return value;
  return fail(holder(levels, name), name, `must be below ${end}`, value);
}
