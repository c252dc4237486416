import { Command } from "commander";
import { Hub } from "../../hub/hub-node.ts";
import type { CliIo } from "../io.ts";
import { jsonOption } from "../options.ts";
import { describeCache } from "./describe.ts";
import { cacheText } from "./text.ts";

const help = `
Each commit of a model has a line: its name as other commands take it; what it is (other: nothing that
deltafold loads); and its size, which it may share with others. Begun are downloads that pull goes on with.`;

export function listCommand(io: CliIo): Command {
  return new Command("list")
    .summary("list the models in the cache")
    .description("Lists the models in the Hugging Face cache, whichever program pulled them.")
    .addOption(jsonOption("print one JSON object, with sizes in bytes"))
    .addHelpText("after", help)
    .action(async (flags: { readonly json?: true }) => {
      const report = await describeCache(await Hub.open());
      io.stdout.write(`${flags.json ? JSON.stringify(report) : cacheText(report)}\n`);
    });
}
