import { isRecord } from "../../../src/json.ts";

/** How replies of a conversation are asked for. Null leaves the choice to the server. */
export interface Settings {
  readonly systemPrompt: string;
  readonly temperature: number | null;
  readonly topP: number | null;
  readonly topK: number | null;
  readonly minP: number | null;
  readonly maxTokens: number | null;
  /** Null draws another one for each reply. */
  readonly seed: number | null;
  readonly thinking: boolean | null;
  readonly drafts: boolean;
  /** JSON text of a list of tools in OpenAI's shape, or empty. */
  readonly tools: string;
}

export const plainSettings: Settings = {
  systemPrompt: "",
  temperature: null,
  topP: null,
  topK: null,
  minP: null,
  maxTokens: null,
  seed: null,
  thinking: null,
  drafts: true,
  tools: "",
};

export type NumberName = "temperature" | "topP" | "topK" | "minP" | "maxTokens" | "seed";

/** What a number may be; the server checks again. */
export interface NumberRule {
  readonly name: NumberName;
  /** The request's field. */
  readonly field: string;
  readonly label: string;
  readonly min: number;
  readonly max: number;
  readonly whole: boolean;
  readonly help: string;
}

export const numberRules: readonly NumberRule[] = [
  {
    name: "temperature",
    field: "temperature",
    label: "Temperature",
    min: 0,
    max: 5,
    whole: false,
    help: "0 always takes the likeliest token",
  },
  {
    name: "topP",
    field: "top_p",
    label: "Top p",
    min: 0.001,
    max: 1,
    whole: false,
    help: "share of probability that is kept",
  },
  {
    name: "topK",
    field: "top_k",
    label: "Top k",
    min: 0,
    max: 1_000_000,
    whole: true,
    help: "candidates that are kept; 0 keeps all",
  },
  {
    name: "minP",
    field: "min_p",
    label: "Min p",
    min: 0,
    max: 1,
    whole: false,
    help: "least probability, as a share of the likeliest",
  },
  {
    name: "maxTokens",
    field: "max_tokens",
    label: "Longest reply",
    min: 1,
    max: 10_000_000,
    whole: true,
    help: "tokens, those of thinking included",
  },
  {
    name: "seed",
    field: "seed",
    label: "Seed",
    min: 0,
    max: Number.MAX_SAFE_INTEGER,
    whole: true,
    help: "the same seed gives the same reply again; empty draws one each time",
  },
];

/** A number as it was typed: null for nothing, and a sentence where it can't be taken. */
export function readNumber(rule: NumberRule, typed: string): number | null | string {
  const text = typed.trim();
  if (text === "") return null;
  const value = Number(text);
  const fits = value >= rule.min && value <= rule.max && (!rule.whole || Number.isInteger(value));
  if (fits) return value;
  const kind = rule.whole ? "a whole number" : "a number";
  return `${rule.label} must be ${kind} from ${rule.min} to ${rule.max}.`;
}

/** Why a text can't be offered as tools; null where it can. */
export function faultOfTools(text: string): string | null {
  if (text.trim() === "") return null;
  let tools: unknown;
  try {
    tools = JSON.parse(text);
  } catch {
    return "Tools must be JSON.";
  }
  if (!Array.isArray(tools)) return "Tools must be a list.";
  for (const [index, tool] of tools.entries()) {
    const spec = isRecord(tool) && tool["type"] === "function" ? tool["function"] : null;
    if (isRecord(spec) && typeof spec["name"] === "string" && spec["name"] !== "") continue;
    return `Tool ${index + 1} must be {"type": "function", "function": {"name": …}}.`;
  }
  return null;
}
