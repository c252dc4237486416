import { CheckpointError } from "../errors.ts";
import type { ModelShape } from "../model/shape.ts";
import { type ConfigFields, fail, objectField, requiredField, text } from "./config-fields.ts";
import { configFile, readFields } from "./config-file.ts";
import {
  type GenerationDefaults,
  readEosIds,
  readGenerationDefaults,
} from "./config-generation.ts";
import {
  type Fp8Blocks,
  type QuantizationConfig,
  readFp8,
  readQuantization,
} from "./config-quantization.ts";
import { readShape } from "./config-shape.ts";
import { drafterKindOf, drafterNames } from "./drafter-kind.ts";
import type { Folder } from "./source.ts";

export interface CheckpointConfig {
  /** `qwen3_5` or `qwen3_5_text`, as the file says. */
  readonly modelType: string;
  readonly shape: ModelShape;
  /** Ids that end a reply: of config.json, its text_config and generation_config.json together. */
  readonly eosIds: readonly number[];
  readonly generation: GenerationDefaults;
  /** Null when the checkpoint holds floats alone. */
  readonly quantization: QuantizationConfig | null;
  /** Null unless its matrices are fp8 in scaled blocks; then `quantization` is null. */
  readonly fp8: Fp8Blocks | null;
}

const generationFile = "generation_config.json";
const modelTypes: ReadonlySet<string> = new Set(["qwen3_5", "qwen3_5_text"]);

/**
 * Reads config.json, wrapper (`text_config`) or flat, and generation_config.json if there is one.
 *
 * @throws CheckpointError naming file, field and value
 */
export async function readConfig(folder: Folder): Promise<CheckpointConfig> {
  const config = await readFields(folder, configFile);
  const drafter = drafterKindOf(config);
  if (drafter !== null) {
    const detail = `is a ${drafterNames[drafter]} drafter, which is no model by itself.`;
    throw new CheckpointError(folder.name, detail);
  }
  const hasGeneration = await folder.has(generationFile);
  const generation = hasGeneration ? await readFields(folder, generationFile) : null;
  const textConfig = objectField(config, "text_config");
  const modelType = readModelType(config, textConfig);
  const shape = readShape(textConfig, config);
  const fp8 = readFp8(textConfig, config);
  return {
    modelType,
    shape,
    eosIds: readEosIds([config, textConfig, generation], shape.vocabSize),
    generation: readGenerationDefaults(generation),
    quantization: fp8 === null ? readQuantization(textConfig, config) : null,
    fp8,
  };
}

function readModelType(config: ConfigFields, textConfig: ConfigFields | null): string {
  const modelType = requiredField([config], "model_type", text);
  const inner = textConfig?.fields.get("model_type");
  const known = `only ${[...modelTypes].join(" and ")} are supported`;
  if (!modelTypes.has(modelType)) fail(config, "model_type", known, modelType);
  if (textConfig !== null && inner !== undefined && !modelTypes.has(String(inner))) {
    fail(textConfig, "model_type", known, inner);
  }
  return modelType;
}
