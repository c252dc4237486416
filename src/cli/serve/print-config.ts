import type { Command, Option } from "commander";

interface Setting {
  readonly value: unknown;
  readonly source: "argument" | "flag" | "env" | "default";
}

const gib = 2 ** 30;

/** Every setting of a command, by its flag: what it is, and where that came from. */
export function configText(command: Command): string {
  const [model] = command.processedArgs as unknown[];
  const settings: Record<string, Setting> = {
    model: { value: model, source: command.args.length > 0 ? "argument" : "default" },
  };
  for (const option of command.options) {
    const name = option.name().replace(/^no-/, "");
    settings[name] = { value: settingOf(command, option), source: sourceOf(command, option) };
  }
  return `${JSON.stringify(settings, null, 2)}\n`;
}

/** As a flag would say it; null where the engine decides. */
function settingOf(command: Command, option: Option): unknown {
  const value: unknown = command.getOptionValue(option.attributeName());
  if (value === undefined) return null;
  if (option.attributeName() === "apiKey")
    return (value as readonly string[]).map(() => "redacted");
  return option.name().endsWith("-gib") ? Number(value) / gib : value;
}

function sourceOf(command: Command, option: Option): Setting["source"] {
  const source = command.getOptionValueSource(option.attributeName());
  if (source === "cli") return "flag";
  return source === "env" ? "env" : "default";
}
