import type { Command, Option } from "commander";
import { variableOf } from "./environment.ts";

interface Setting {
  /** As the flag says it, or whether it is given where it takes no value; absent where it is unset. */
  readonly value?: unknown;
  readonly source: "argument" | "flag" | "env" | "default" | "unset";
  readonly variable?: string;
  /** Of what is unset: what it is about, and what it is then. */
  readonly help?: string;
}

const gib = 2 ** 30;

/** Every setting of a command, by its flag: what it is, where that came from, and its variable. */
export function configText(command: Command): string {
  const [model] = command.processedArgs as unknown[];
  const settings: Record<string, Setting> = {
    model: { value: model, source: command.args.length > 0 ? "argument" : "default" },
  };
  for (const option of command.options) settings[option.name()] = settingOf(command, option);
  return `${JSON.stringify(settings, null, 2)}\n`;
}

function settingOf(command: Command, option: Option): Setting {
  const attribute = option.attributeName();
  const value: unknown = command.getOptionValue(attribute);
  const variable = variableOf(option);
  if (option.negate || option.isBoolean()) {
    // A flag and the one that denies it say one value: at most one of them is given.
    const given = value === !option.negate;
    return { value: given, source: given ? sourceOf(command, attribute) : "default", variable };
  }
  if (value === undefined) return { source: "unset", variable, help: option.description };
  return { value: shown(option, value), source: sourceOf(command, attribute), variable };
}

function shown(option: Option, value: unknown): unknown {
  if (option.name() === "api-key") return (value as readonly string[]).map(() => "redacted");
  if (option.name().endsWith("-gib")) return Number(value) / gib;
  return value === option.defaultValue ? (option.defaultValueDescription ?? value) : value;
}

function sourceOf(command: Command, attribute: string): Setting["source"] {
  const source = command.getOptionValueSource(attribute);
  if (source === "cli") return "flag";
  return source === "env" ? "env" : "default";
}
