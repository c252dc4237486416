/** What `batch` does, apart from its flags: it loads what speaks to the queue. */
import { type BatchCounts, Batches, type BatchRecord } from "../../batch/batches.ts";
import { collect } from "../../batch/collect.ts";
import { isRefusal, refusedError } from "../../batch/connection.ts";
import { BatchFile } from "../../batch/file-node.ts";
import { ResultsFile } from "../../batch/results-node.ts";
import { pause } from "../../clock.ts";
import { DeltafoldError } from "../../errors.ts";
import { aligned, type Line, plural } from "../format.ts";
import type { CliIo } from "../io.ts";
import { startProgress } from "../progress.ts";
import { untilInterrupted } from "../pull/interrupt.ts";
import type { QueueFlags } from "./options.ts";

/** For results that are being written once the user has stopped it. */
const graceMs = 2000;
/** Broken lines that are told; of more, how many there are. */
const toldLines = 20;

export interface SubmitFlags extends QueueFlags {
  readonly attempts: number;
  readonly build?: string;
  readonly device?: string;
  readonly weights?: string;
  readonly quiet?: true;
}

/** @throws QueueError, also for what the server refuses of the work */
async function withBatches(
  io: CliIo,
  { queue }: QueueFlags,
  act: (batches: Batches) => Promise<void>,
): Promise<void> {
  await using batches = await Batches.connect(queue, (message) =>
    io.stderr.write(`warning: ${message}\n`),
  );
  try {
    await act(batches);
  } catch (error) {
    throw isRefusal(error) ? refusedError(error) : error;
  }
}

export async function submit(io: CliIo, path: string, flags: SubmitFlags): Promise<void> {
  const { build, device, weights, attempts, quiet = false } = flags;
  const file = await BatchFile.open(path);
  tellBroken(io, file);
  const demands = {
    ...(build !== undefined && { build }),
    ...(device !== undefined && { device }),
    ...(weights !== undefined && { weights }),
  };
  await withBatches(io, flags, async (batches) => {
    using progress = startProgress(io, "submitting", quiet);
    await batches.submit(file, { demands, attempts }, (added) =>
      progress.update(added, file.requests),
    );
  });
  const without = file.broken.length > 0 ? `, without ${plural(file.broken.length, "line")}` : "";
  io.stdout.write(`${file.id}: ${plural(file.requests, "request")}${without}\n`);
}

function tellBroken({ stderr }: CliIo, { path, broken }: BatchFile): void {
  for (const { line, message } of broken.slice(0, toldLines)) {
    stderr.write(`warning: line ${line} of ${path} is left out: ${message}\n`);
  }
  const more = broken.length - toldLines;
  if (more > 0) stderr.write(`warning: so are ${plural(more, "more line")}\n`);
}

export async function status(
  io: CliIo,
  path: string,
  flags: QueueFlags & { readonly json?: true },
): Promise<void> {
  const { id } = await BatchFile.open(path);
  await withBatches(io, flags, async (batches) => {
    const { requests, broken, demands, cancelled } = await batches.get(id, path);
    const counts = await batches.counts(id);
    const paused = await batches.queue(id).isPaused();
    const open = paused ? "paused" : "open";
    const state = cancelled ? "cancelled" : counts.done >= requests ? "done" : open;
    const all = { id, state, requests, broken, demands, ...counts };
    io.stdout.write(flags.json ? `${JSON.stringify(all)}\n` : statusText(all));
  });
}

function statusText({
  demands,
  requests,
  ...batch
}: Pick<BatchRecord, "id" | "requests" | "demands"> &
  BatchCounts & { readonly state: string }): string {
  const { id, state, waiting, delayed, running, done } = batch;
  const lines: Line[] = [
    ["batch", id],
    ["state", state],
    ["done", `${done} of ${requests}`],
    ["running", `${running}`],
    ["waiting", `${waiting}${delayed > 0 ? `, and ${delayed} to be tried again` : ""}`],
    ...Object.entries(demands).map(([name, asked]): Line => [`only ${name}`, asked]),
  ];
  return `${aligned([lines])}\n`;
}

export interface ResultsFlags extends QueueFlags {
  readonly output?: string;
  readonly wait: boolean;
  readonly remove?: true;
  readonly quiet?: true;
}

export async function results(io: CliIo, path: string, flags: ResultsFlags): Promise<void> {
  const { wait, remove = false, quiet = false } = flags;
  const output = flags.output ?? `${path.replace(/\.jsonl$/, "")}.results.jsonl`;
  const { id } = await BatchFile.open(path);
  await withBatches(io, flags, async (batches) => {
    const record = await batches.get(id, path);
    await using file = await ResultsFile.open(output, id);
    await untilInterrupted(io, "Stopped; the same command goes on.", async (signal) => {
      using progress = startProgress(io, "results", quiet);
      const collected = collect(batches, record, file, {
        ...{ wait, signal, onProgress: progress.update },
      });
      await Promise.race([collected, outwaited(signal)]);
    });
    io.stdout.write(`${output}: ${file.size} of ${plural(record.requests, "result")}\n`);
    if (!remove) return;
    if (file.size < record.requests) throw new DeltafoldError("batch_open", openText);
    await batches.remove(record);
  });
}

/** Rejects a while after the signal: what waits for a queue that is gone hears of no signal. */
async function outwaited(signal: AbortSignal): Promise<never> {
  await new Promise((resolve) => signal.addEventListener("abort", resolve));
  await pause(graceMs);
  throw signal.reason;
}

const openText = "The batch stays in the queue: not all of its results are there.";

export async function cancel(io: CliIo, path: string, flags: QueueFlags): Promise<void> {
  const { id } = await BatchFile.open(path);
  await withBatches(io, flags, async (batches) => {
    const record = await batches.get(id, path);
    await batches.cancel(record);
    const { done } = await batches.counts(id);
    const requests = plural(record.requests, "request");
    io.stdout.write(`${id} is cancelled: ${done} of ${requests} are done\n`);
  });
}
