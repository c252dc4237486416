import { Option } from "commander";
import { afterEach, expect, test, vi } from "vitest";
import { runLine } from "../io.cases.ts";
import { wholeNumber } from "../values.ts";
import { keyFileValue, keyValue } from "./access-values.ts";
import { VariableCommand, variableOf } from "./environment.ts";
import { configText } from "./print-config.ts";

afterEach(() => {
  vi.unstubAllEnvs();
});

/** What a command makes of its arguments, and of variables. */
function settings(args: readonly string[], variables: Record<string, string> = {}) {
  for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value);
  const command = new VariableCommand("serve")
    .argument("[model]", "a model", "nano")
    .addOption(new Option("--port <n>", "a port").argParser(wholeNumber(0, 9)).default(8))
    .addOption(new Option("--api-key <key>", "a key").argParser(keyValue))
    .addOption(new Option("--api-key-file <file>", "keys").argParser(keyFileValue))
    .addOption(new Option("--kv-gib <n>", "a size").argParser((text) => Number(text) * 2 ** 30))
    .option("--spill-dir <folder>", "a folder")
    .option("--metrics-open", "no key")
    .option("--no-live", "no line")
    .option("--thinking", "think")
    .option("--no-thinking", "don't")
    .exitOverride()
    .configureOutput({ writeErr: () => {} });
  command.parse(args, { from: "user" });
  return JSON.parse(configText(command));
}

test("flags have variables of their names", () => {
  const names = ["--api-key-file <f>", "--no-live", "-q, --quiet", "--kv-gib <n>"].map((flags) =>
    variableOf(new Option(flags)),
  );
  expect(names).toEqual([
    ...["DELTAFOLD_API_KEY_FILE", "DELTAFOLD_NO_LIVE", "DELTAFOLD_QUIET", "DELTAFOLD_KV_GIB"],
  ]);
});

test("what nobody says is a default, or unset where the engine decides", () => {
  const source = "default";
  const unset = { source: "unset" };
  expect(settings([])).toEqual({
    model: { value: "nano", source },
    port: { value: 8, source, variable: "DELTAFOLD_PORT" },
    "api-key": { ...unset, variable: "DELTAFOLD_API_KEY", help: "a key" },
    "api-key-file": { ...unset, variable: "DELTAFOLD_API_KEY_FILE", help: "keys" },
    "kv-gib": { ...unset, variable: "DELTAFOLD_KV_GIB", help: "a size" },
    "spill-dir": { ...unset, variable: "DELTAFOLD_SPILL_DIR", help: "a folder" },
    "metrics-open": { value: false, source, variable: "DELTAFOLD_METRICS_OPEN" },
    "no-live": { value: false, source, variable: "DELTAFOLD_NO_LIVE" },
    thinking: { value: false, source, variable: "DELTAFOLD_THINKING" },
    "no-thinking": { value: false, source, variable: "DELTAFOLD_NO_THINKING" },
  });
});

test("flags come before variables, and variables before defaults", () => {
  const variables = {
    ...{ DELTAFOLD_PORT: "3", DELTAFOLD_KV_GIB: "0.5", DELTAFOLD_METRICS_OPEN: "1" },
    ...{ DELTAFOLD_NO_LIVE: "true", DELTAFOLD_NO_THINKING: "1" },
  };
  const args = ["other", "--port", "4", "--spill-dir", "/tmp/x", "--thinking"];
  expect(settings(args, variables)).toMatchObject({
    model: { value: "other", source: "argument" },
    port: { value: 4, source: "flag" },
    "kv-gib": { value: 0.5, source: "env" },
    "spill-dir": { value: "/tmp/x", source: "flag" },
    "metrics-open": { value: true, source: "env" },
    "no-live": { value: true, source: "env" },
    thinking: { value: true, source: "flag" },
    "no-thinking": { value: false, source: "default" },
  });
});

test("keys are never shown", () => {
  const shown = settings(["--api-key", "sk-secret", "--api-key", "sk-other"]);
  expect(shown["api-key"]).toMatchObject({ value: ["redacted", "redacted"], source: "flag" });
  const variable = settings([], { DELTAFOLD_API_KEY: "sk-secret" });
  expect(variable["api-key"]).toMatchObject({ value: ["redacted"], source: "env" });
});

test.each(["", "0", "false", "no"])("a flag without a value isn't given by %j", (value) => {
  const shown = settings([], { DELTAFOLD_METRICS_OPEN: value, DELTAFOLD_NO_LIVE: value });
  expect([shown["metrics-open"].value, shown["no-live"].value]).toEqual([false, false]);
});

test("an empty variable is none, but for a key: that is meant to close the server", () => {
  const shown = settings([], {
    DELTAFOLD_PORT: "",
    DELTAFOLD_SPILL_DIR: "",
    DELTAFOLD_API_KEY: "",
  });
  expect([shown.port.value, shown["spill-dir"].source]).toEqual([8, "unset"]);
  expect(shown["api-key"]).toMatchObject({ value: ["redacted"], source: "env" });
});

test("nor is a file of keys none, but where a flag names another", () => {
  const variables = { DELTAFOLD_API_KEY_FILE: "" };
  const message =
    "option '--api-key-file <file>' value '' from env 'DELTAFOLD_API_KEY_FILE' is invalid. " +
    "It must be the path of a file, and it is empty.";
  expect(() => settings([], variables)).toThrow(message);
  expect(() => settings(["--api-key-file", ""])).toThrow("It must be the path of a file");
  const shown = settings(["--api-key-file", "keys"], variables);
  expect(shown["api-key-file"]).toMatchObject({ value: "keys", source: "flag" });
});

test("a bad variable is named", () => {
  const message =
    "option '--port <n>' value '99' from env 'DELTAFOLD_PORT' is invalid. It must be a whole number";
  expect(() => settings([], { DELTAFOLD_PORT: "99" })).toThrow(message);
});

test("serve prints its settings, and neither loads nor listens", async () => {
  vi.stubEnv("DELTAFOLD_API_KEY", "sk-secret");
  vi.stubEnv("DELTAFOLD_HOST", "0.0.0.0");
  const line = [
    "serve",
    "./missing",
    "--print-config",
    "--queue",
    "3",
    "--api-key-file",
    "missing",
  ];
  const { code, stdout, stderr } = await runLine(line);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).not.toContain("sk-secret");
  const shown = JSON.parse(stdout);
  expect(shown).toMatchObject({
    model: { value: "./missing", source: "argument" },
    host: { value: "0.0.0.0", source: "env" },
    port: { value: 8080, source: "default" },
    queue: { value: 3, source: "flag" },
    "draft-tree": { value: "off", source: "default" },
    "spill-gib": { value: 0, source: "default" },
    "api-key": { value: ["redacted"], source: "env" },
    "api-key-file": { value: "missing", source: "flag" },
    "drain-delay-seconds": { value: 0, source: "default" },
    "drain-seconds": { value: 30, source: "default" },
    "prompt-cache-gib": {
      source: "unset",
      variable: "DELTAFOLD_PROMPT_CACHE_GIB",
      help: expect.stringContaining("(default: 1, or none where that doesn't fit)"),
    },
    "no-drafts": { value: false, source: "default", variable: "DELTAFOLD_NO_DRAFTS" },
  });
  // Every flag of the help but the help itself.
  const { stdout: help } = await runLine(["serve", "--help"]);
  const flags = [...help.matchAll(/^ {2}(?:-\w, )?--([\w-]+)/gm)].map(([, flag]) => flag!);
  expect(new Set(Object.keys(shown))).toEqual(
    new Set(["model", ...flags.filter((flag) => flag !== "help")]),
  );
});

test("the help tells the rule, not every variable", async () => {
  const { stdout } = await runLine(["serve", "--help"]);
  expect(stdout).toContain("DELTAFOLD_PORT for --port");
  expect(stdout).not.toContain("(env:");
  expect(stdout).toMatch(/--port <n> +the port; 0 picks one that is free \(default: 8080\)/);
});
