import { CheckpointError, DeltafoldError, InputError } from "../../errors.ts";
import type { Hub } from "../../hub/hub-node.ts";
import { type HubName, hubNameText, mainRevision } from "../../hub/names.ts";
import { Pull } from "../../hub/pull-node.ts";
import type { OpenOptions } from "../../node.ts";
import { aligned, bytesText, type Line, plural, secondsText } from "../format.ts";
import type { CliIo } from "../io.ts";
import { startProgress } from "../progress.ts";
import { timed } from "../timed.ts";
import { askYesNo } from "./ask.ts";
import { type Fit, fitOf } from "./fit.ts";
import { untilInterrupted } from "./interrupt.ts";
import { Rate } from "./rate.ts";

/** Less is not worth telling. */
const listedBytesMin = 2 ** 20;

export interface PullOptions {
  readonly quiet: boolean;
  /** Whether the user is asked before it begins. */
  readonly asks: boolean;
  /** What the model will be opened with; null: it is pulled to be there, and what it is doesn't matter. */
  readonly toOpen: OpenOptions | null;
}

/**
 * Pulls a model: says what is to come and whether it will fit, and then shows how far it is.
 * @returns its folder in the cache
 * @throws HubError, CheckpointError; InputError where the user says no, DeltafoldError for a full disk
 */
export async function pullModel(
  io: CliIo,
  hub: Hub,
  name: HubName,
  options: PullOptions,
): Promise<string> {
  const model = hubNameText(name);
  const tell = (text: string) => options.quiet || io.stderr.write(`${text}\n`);
  const onWait = (process: number | null) =>
    tell(
      `waiting for ${process === null ? "another process" : `process ${process}`}: it pulls ${model}`,
    );
  const stopped = `The pull of ${model} was stopped; the next goes on with what has come.`;
  return await untilInterrupted(io, stopped, async (signal) => {
    await using pull = await Pull.open(hub, name, signal, onWait);
    if (pull.missingBytes > 0) {
      const fit = await fitFor(pull, options.toOpen);
      const lines = aligned([planLines(pull, fit, hub)]);
      if (options.asks) io.stderr.write(`${lines}\n`);
      else tell(lines);
      checkDisk(pull, hub);
      if (options.asks && !(await askYesNo(io, "Pull it?", fit.fits, signal))) {
        throw new InputError(`${model} was not pulled.`);
      }
    }
    const { ms } = await timed(() => runShown(io, pull, options.quiet));
    const came = `${bytesText(pull.missingBytes)} in ${secondsText(ms)}`;
    tell(pull.missingBytes > 0 ? `${model}: ${came}` : `${model} is all here`);
    return pull.folder;
  });
}

/** What can't be loaded may be pulled all the same, to be converted. */
async function fitFor({ remote }: Pull, toOpen: OpenOptions | null): Promise<Fit> {
  try {
    return await fitOf(remote, toOpen ?? {});
  } catch (error) {
    if (toOpen || !(error instanceof CheckpointError)) throw error;
    return { fits: false, text: `it can't be loaded as it is: ${error.message}` };
  }
}

function planLines(pull: Pull, { text }: Fit, hub: Hub): Line[] {
  const { totalBytes, missingBytes, freeBytes, files, commit } = pull;
  const { repo, revision } = pull.name;
  const here = totalBytes - missingBytes;
  // The config and the index come before the plan.
  const partly = here > listedBytesMin ? `, of which ${bytesText(here)} are here` : "";
  return [
    ["model", `${repo}, ${revision ?? mainRevision} is ${commit}`],
    ["size", `${bytesText(totalBytes)} in ${plural(files.length, "file")}${partly}`],
    ["disk", `${bytesText(freeBytes)} free for ${hub.settings.cache}`],
    ["memory", text],
  ];
}

/** @throws DeltafoldError where it would not fit the disk */
function checkDisk({ missingBytes, freeBytes }: Pull, { settings }: Hub): void {
  if (missingBytes <= freeBytes) return;
  const sizes = `${bytesText(missingBytes)} are to come, and ${bytesText(freeBytes)} are free`;
  const hint = "Make room, or set HF_HUB_CACHE to a folder of another disk.";
  throw new DeltafoldError("disk_full", `${settings.cache}: ${sizes}. ${hint}`);
}

async function runShown(io: CliIo, pull: Pull, quiet: boolean): Promise<void> {
  const { totalBytes } = pull;
  const rate = new Rate(totalBytes - pull.missingBytes, totalBytes);
  let trouble = "";
  using progress = startProgress(io, pull.name.repo, quiet, () => `, ${rate.text()}${trouble}`);
  await pull.run({
    onBytes(bytes) {
      trouble = "";
      rate.reached(bytes);
      progress.update(bytes, totalBytes);
    },
    onFault({ message }) {
      trouble = `, trying again: ${message}`;
      // Where lines are shown, the next comes with more bytes.
      if (!quiet && !io.stderr.isTTY) io.stderr.write(`${pull.name.repo}${trouble}\n`);
    },
  });
}
