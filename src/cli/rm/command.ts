import { Command } from "commander";
import { InputError } from "../../errors.ts";
import { Hub } from "../../hub/hub-node.ts";
import { type HubName, hubNameText } from "../../hub/names.ts";
import { removeModel } from "../../hub/remove-node.ts";
import { bytesText } from "../format.ts";
import type { CliIo } from "../io.ts";
import { askYesNo } from "../pull/ask.ts";
import { untilInterrupted } from "../pull/interrupt.ts";
import { hubName, type YesFlags, yesOption } from "../pull/options.ts";

export function rmCommand(io: CliIo): Command {
  return new Command("rm")
    .summary("remove a model from the cache")
    .description(
      "Removes models from the Hugging Face cache, for other programs as well. With a revision, what no " +
        "other revision needs.",
    )
    .argument("<model...>", "ORG/NAME, or ORG/NAME@REVISION")
    .addOption(yesOption("remove"))
    .action(async (models: string[], flags: YesFlags) => {
      const names = models.map(hubName);
      if (!flags.yes && !io.stdin.isTTY) {
        throw new InputError(
          "rm asks before it removes: --yes answers where there is no terminal.",
        );
      }
      const hub = await Hub.open();
      for (const name of names) await remove(io, hub, name, flags.yes ?? false);
    });
}

/** @throws InputError where the model isn't there */
async function remove(io: CliIo, hub: Hub, name: HubName, yes: boolean): Promise<void> {
  const model = hubNameText(name);
  await untilInterrupted(io, `${model}: stopped`, async (signal) => {
    let found = false;
    const bytes = await removeModel(hub, name, signal, async (bytes) => {
      found = true;
      return yes || (await askYesNo(io, `Remove ${model}, ${bytesText(bytes)}?`, false, signal));
    });
    if (!found) throw new InputError(`${model} is not in ${hub.settings.cache}.`);
    if (bytes !== null) io.stderr.write(`${model} is gone: ${bytesText(bytes)}\n`);
  });
}
