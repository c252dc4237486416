import { Command } from "commander";
import { expect, test } from "vitest";
import type { OpenOptions } from "../node.ts";
import { optionArgs } from "./option-args.ts";
import { addModelOptions, type ModelFlags, openOptions } from "./options.ts";

/** What a command makes of its arguments. */
function optionsOf(args: readonly string[]): OpenOptions {
  const command = addModelOptions(new Command("any").exitOverride());
  command.parse(args, { from: "user" });
  return openOptions(command.opts<ModelFlags>());
}

test.each([
  [[]],
  [["--backend", "reference", "--context", "512", "--no-drafts"]],
  [["--threads", "3", "--activations", "int8", "--draft-tree", "12", "--drafter-bits", "8"]],
  [["--backend", "webgpu", "--adapter", "a b", "--activations", "f16", "--kv", "f16"]],
  [["--drafter", "--odd name", "--draft-vocab", "1000", "--draft-tree", "off"]],
])("another process has the same options: %j", (args) => {
  const options = optionsOf(args);
  expect(optionsOf(optionArgs(options))).toEqual(options);
});

test("an option without a value is not said", () => {
  expect(optionArgs({ adapter: null, drafts: true })).toEqual([]);
});
