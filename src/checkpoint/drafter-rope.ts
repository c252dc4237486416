import type { DrafterRope } from "../model/drafter-shape.ts";
import {
  type ConfigFields,
  fail,
  objectField,
  optionalField,
  positive,
  requiredField,
  size,
  text,
} from "./config-fields.ts";

/** What transformers takes where yarn doesn't say. */
const betaFastDefault = 32;
const betaSlowDefault = 1;
/** Fields that would change yarn in ways that no known drafter asks for. */
const yarnUnread: readonly string[] = ["mscale", "mscale_all_dim"];

/**
 * Rotary positions: `rope_theta` at the top or in `rope_parameters`; `rope_scaling` null, or yarn.
 *
 * @throws CheckpointError naming file, field and value
 */
export function readDrafterRope(config: ConfigFields): DrafterRope {
  const nested = [objectField(config, "rope_parameters"), objectField(config, "rope_scaling")];
  const theta = requiredField([config, ...nested], "rope_theta", positive);
  for (const level of [config, ...nested]) {
    const factor = optionalField([level], "partial_rotary_factor", positive) ?? 1;
    if (level && factor !== 1) fail(level, "partial_rotary_factor", "must be 1", factor);
  }
  let yarn: DrafterRope["yarn"] = null;
  for (const rope of nested) {
    if (rope === null) continue;
    const name = rope.fields.has("rope_type") ? "rope_type" : "type";
    const type = optionalField([rope], name, text) ?? "default";
    if (type === "yarn") yarn = readYarn(rope, config);
    else if (type !== "default") fail(rope, name, "must be default or yarn", type);
  }
  return { theta, yarn };
}

function readYarn(rope: ConfigFields, config: ConfigFields): NonNullable<DrafterRope["yarn"]> {
  const unread = yarnUnread.find((name) => rope.fields.has(name));
  if (unread) fail(rope, unread, "is not read with yarn", rope.fields.get(unread));
  if (rope.fields.get("truncate") === false) fail(rope, "truncate", "must be true", false);
  const factor = requiredField([rope], "factor", positive);
  const original = optionalField([rope], "original_max_position_embeddings", size);
  const spread = factor > 1 ? 0.1 * Math.log(factor) + 1 : 1;
  return {
    factor,
    originalContext: original ?? requiredField([config], "max_position_embeddings", size),
    betaFast: optionalField([rope], "beta_fast", positive) ?? betaFastDefault,
    betaSlow: optionalField([rope], "beta_slow", positive) ?? betaSlowDefault,
    attentionFactor: optionalField([rope], "attention_factor", positive) ?? spread,
  };
}
