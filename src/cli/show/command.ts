import { Argument, Command } from "commander";
import type { CliIo } from "../io.ts";
import { jsonOption } from "../options.ts";
import { describeModel } from "./describe.ts";
import { descriptionText } from "./text.ts";

export function showCommand(io: CliIo): Command {
  return new Command("show")
    .summary("say what a checkpoint holds")
    .description("Checks a checkpoint and says what it holds, without loading it.")
    .addArgument(
      new Argument("<model>", "an embedded model, a folder, or a model in the cache: ORG/NAME"),
    )
    .addOption(jsonOption("print one JSON object"))
    .action(async (model: string, flags: { readonly json?: true }) => {
      const description = await describeModel(model);
      const text = flags.json ? JSON.stringify(description) : descriptionText(description);
      io.stdout.write(`${text}\n`);
    });
}
