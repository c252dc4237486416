import { z } from "zod";
import type { LayerType, ModelShape } from "../model/shape.ts";
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
  text,
} from "./config-fields.ts";

const layersMax = 4096;
const fullAttentionIntervalDefault = 4;
const rotaryFactorDefault = 0.25;
/** `mrope` is what older files call the default with image axes; for text the two are equal. */
const plainRopeTypes: ReadonlySet<string> = new Set(["default", "mrope"]);

/**
 * The model's sizes, each from `text_config` first and then from the top level.
 *
 * @throws CheckpointError naming file, field and value of the first that makes no sense
 */
export function readShape(textConfig: ConfigFields | null, config: ConfigFields): ModelShape {
  const levels = [textConfig, config];
  const sizeOf = (name: string) => requiredField(levels, name, size);
  checkPlainLayers(levels);
  const headDim = sizeOf("head_dim");
  const shape: ModelShape = {
    vocabSize: sizeOf("vocab_size"),
    hiddenSize: sizeOf("hidden_size"),
    intermediateSize: sizeOf("intermediate_size"),
    layerTypes: readLayerTypes(levels),
    headCount: sizeOf("num_attention_heads"),
    kvHeadCount: sizeOf("num_key_value_heads"),
    headDim,
    ...readRope(levels, headDim),
    linearKeyHeads: sizeOf("linear_num_key_heads"),
    linearValueHeads: sizeOf("linear_num_value_heads"),
    linearKeyDim: sizeOf("linear_key_head_dim"),
    linearValueDim: sizeOf("linear_value_head_dim"),
    convTaps: requiredField(levels, "linear_conv_kernel_dim", z.int().min(2).max(64)),
    normEps: requiredField(levels, "rms_norm_eps", positive),
    tiedHead: optionalField(levels, "tie_word_embeddings", flag) ?? false,
    contextMax: sizeOf("max_position_embeddings"),
  };
  checkMultiple(levels, "num_attention_heads", "num_key_value_heads");
  checkMultiple(levels, "linear_num_value_heads", "linear_num_key_heads");
  return shape;
}

function readLayerTypes(levels: Levels): readonly LayerType[] {
  const layers = requiredField(levels, "num_hidden_layers", z.int().min(1).max(layersMax));
  const kind = z.enum(["linear_attention", "full_attention"]);
  const given = optionalField(levels, "layer_types", z.array(kind));
  if (given !== undefined) {
    if (given.length !== layers) {
      const detail = `must have num_hidden_layers (${layers}) entries`;
      fail(holder(levels, "layer_types"), "layer_types", detail, given.length);
    }
    return given.map((type) => (type === "full_attention" ? "full" : "linear"));
  }
  const interval =
    optionalField(levels, "full_attention_interval", size) ?? fullAttentionIntervalDefault;
  return Array.from({ length: layers }, (_, i) => ((i + 1) % interval === 0 ? "full" : "linear"));
}

function readRope(levels: Levels, headDim: number): { ropeTheta: number; rotaryDim: number } {
  const nested = levels.flatMap((level) =>
    level === null
      ? []
      : [objectField(level, "rope_parameters"), objectField(level, "rope_scaling")],
  );
  for (const rope of nested) {
    for (const name of ["rope_type", "type"]) {
      const type = optionalField([rope], name, text);
      if (rope !== null && type !== undefined && !plainRopeTypes.has(type)) {
        fail(rope, name, "only default rotary positions are supported", type);
      }
    }
  }
  const all = [...nested, ...levels].filter((level) => level !== null);
  const factorType = z.number().positive().max(1);
  const factor = optionalField(all, "partial_rotary_factor", factorType) ?? rotaryFactorDefault;
  const rotaryDim = Math.trunc(headDim * factor);
  if (rotaryDim < 2 || rotaryDim % 2 !== 0) {
    const detail = `head_dim ${headDim} × this must be an even number of dims`;
    fail(holder(all, "partial_rotary_factor"), "partial_rotary_factor", detail, factor);
  }
  return { ropeTheta: requiredField(all, "rope_theta", positive), rotaryDim };
}
