import { Command } from "commander";
import { Hub } from "../../hub/hub-node.ts";
import type { CliIo } from "../io.ts";
import { quietOption } from "../options.ts";
import { hubName } from "./options.ts";
import { pullModel } from "./pull-model.ts";

const help = `
Models lie in the cache that Python's Hugging Face libraries use, too: HF_HUB_CACHE, or else hub in
HF_HOME, or else ~/.cache/huggingface/hub. HF_TOKEN opens private and gated models, HF_ENDPOINT names
another hub. Each model's folder is printed on standard output.

Examples:
  deltafold pull mlx-community/Qwen3.5-2B-MLX-4bit
  deltafold pull TensorFold/Qwen3.8-27B-MLX-4bit z-lab/Qwen3.8-27B-DFlash2
  deltafold pull org/name@v1.0`;

export function pullCommand(io: CliIo): Command {
  return new Command("pull")
    .summary("download a model")
    .description(
      "Downloads models from the Hugging Face hub: the files that are needed, each checked by its hash. What " +
        "was stopped goes on where it was.",
    )
    .argument("<model...>", "ORG/NAME, or ORG/NAME@REVISION: a branch, a tag or a commit")
    .addOption(quietOption())
    .addHelpText("after", help)
    .action(async (models: string[], flags: { readonly quiet?: true }) => {
      const names = models.map(hubName);
      const hub = await Hub.open();
      const options = { quiet: flags.quiet ?? false, asks: false, toOpen: null };
      for (const name of names) {
        io.stdout.write(`${await pullModel(io, hub, name, options)}\n`);
      }
    });
}
