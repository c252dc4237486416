import { derivedSizes, type ModelShape } from "../../model/shape.ts";
import { bytesText, countText } from "../format.ts";
import type { ModelDescription } from "./describe.ts";

/** A model's description as aligned lines. */
export function descriptionText(model: ModelDescription): string {
  const { shape, sampling } = model;
  const formats = model.formats.map(
    ({ format, parameters }) => `${format} (${countText(parameters)})`,
  );
  const lines: [string, string][] = [
    ["folder", model.folder],
    ["model", `${model.model_type}, ${model.layout === "mlx" ? "MLX" : "Hugging Face"} layout`],
    ["parameters", `${countText(model.parameters)} (${model.parameters})`],
    ["matrices", formats.join("; ")],
    ["bits", `${model.bits_per_parameter.toFixed(2)} a parameter`],
    ["weights", bytesText(model.weight_bytes)],
    ["on disk", `${bytesText(model.file_bytes)} in ${plural(model.files, "file")}`],
    ...shapeLines(shape),
    ["context", `${model.context_max} tokens`],
    ["ends at", model.eos_ids.length === 0 ? "no token" : `ids ${model.eos_ids.join(", ")}`],
    ["template", model.chat_template ? "yes" : "no (it completes texts, but does not chat)"],
    ["sampling", samplingText(sampling)],
  ];
  const width = Math.max(...lines.map(([name]) => name.length)) + 2;
  return lines.map(([name, value]) => name.padEnd(width) + value).join("\n");
}

function shapeLines(shape: ModelShape): [string, string][] {
  const { linearLayers, fullLayers } = derivedSizes(shape);
  const order = shape.layerTypes.map((type) => (type === "linear" ? "L" : "F")).join("");
  return [
    ["layers", `${shape.layerTypes.length}: ${linearLayers} linear, ${fullLayers} full (${order})`],
    ["hidden", `${shape.hiddenSize}, MLP ${shape.intermediateSize}`],
    [
      "attention",
      `${shape.headCount} query and ${plural(shape.kvHeadCount, "KV head")} of ${shape.headDim}, ` +
        `${shape.rotaryDim} rotated, theta ${shape.ropeTheta}`,
    ],
    [
      "delta net",
      `${plural(shape.linearKeyHeads, "key head")} of ${shape.linearKeyDim}, ` +
        `${plural(shape.linearValueHeads, "value head")} of ${shape.linearValueDim}, ` +
        `${shape.convTaps} taps`,
    ],
    ["vocabulary", `${shape.vocabSize}, ${shape.tiedHead ? "tied" : "its own"} head`],
  ];
}

function samplingText(sampling: ModelDescription["sampling"]): string {
  const parts: [string, number | null][] = [
    ["temperature", sampling.temperature],
    ["top-p", sampling.topP],
    ["top-k", sampling.topK],
    ["min-p", sampling.minP],
    ["repetition penalty", sampling.repetitionPenalty],
  ];
  const said = parts.filter(([, value]) => value !== null);
  if (said.length === 0) return "nothing recommended";
  return said.map(([name, value]) => `${name} ${value}`).join(", ");
}

const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;
