import { hostname } from "node:os";
import { deviceClassOf } from "../../backend/identity.ts";
import { Batches } from "../../batch/batches.ts";
import type { WorkerIdentity } from "../../batch/identity.ts";
import { BatchWorker } from "../../batch/worker.ts";
import type { Engine } from "../../engine.ts";
import { DeltafoldError } from "../../errors.ts";
import { packageVersion } from "../../package-version-node.ts";
import { createApp } from "../../serve/app.ts";
import { errorReply } from "../../serve/error-reply.ts";
import { expositionType } from "../../serve/exposition.ts";
import { standIn } from "../../serve/stand-in.ts";
import type { QueueFlags } from "../batch/options.ts";
import type { CliIo } from "../io.ts";
import { loadEngine } from "../load.ts";
import { type ModelFlags, openOptions, type ReplyFlags } from "../options.ts";
import type { YesFlags } from "../pull/options.ts";
import { firstSignal, Listener } from "../serve/listener.ts";
import { residentBytes } from "../serve/reporter.ts";
import { type StreamFlags, streamOptions } from "../stream-options.ts";

export interface WorkerFlags extends QueueFlags, ModelFlags, ReplyFlags, StreamFlags, YesFlags {
  readonly lockSeconds: number;
  readonly drainSeconds: number;
  readonly metricsPort?: number;
  readonly metricsHost: string;
  readonly quiet?: true;
}

/** What may be asked of a worker over HTTP. */
const told = ["/health", "/health/live", "/health/ready", "/metrics"];

/** Serves batches until a signal. @throws QueueError, and what loading a model throws */
export async function work(io: CliIo, model: string, flags: WorkerFlags): Promise<void> {
  const { quiet = false, lockSeconds, drainSeconds, yes = false } = flags;
  const warn = (message: string) => io.stderr.write(`warning: ${message}\n`);
  const options = {
    ...openOptions(flags),
    ...streamOptions(flags),
    ...(flags.maxTokens !== undefined && { maxTokens: flags.maxTokens }),
    // The queue is elsewhere: what this took from it, it serves.
    queueMax: Number.MAX_SAFE_INTEGER,
    identify: true,
  };
  // A queue that isn't there is found before minutes are spent on loading; so is a busy port.
  await using batches = await Batches.connect(flags.queue, warn);
  await using listener = await metricsListener(flags);
  await using engine = await loadEngine(io, model, { ...options, onWarning: warn }, { quiet, yes });
  const app = createApp({ engine, residentBytes, report: (error) => warn(String(error)) });
  const identity = identityOfWorker(engine);
  const worker = new BatchWorker({
    ...{ batches, warn, fetch: (request: Request) => app.fetch(request) },
    identity,
    isWell: () => engine.condition.serving,
    slots: engine.info.backend.slots,
    lockMs: lockSeconds * 1000,
  });
  if (listener) listener.fetch = (request) => tell(request, app.fetch, worker);
  const { name, build, device, weights } = identity();
  const where = listener ? `; ${listener.url}/metrics` : "";
  if (!quiet)
    io.stdout.write(`${name}: build ${build}, weights ${weights}, device ${device}${where}\n`);
  const stop = new AbortController();
  let drainMs = 0;
  void firstSignal(io.signals).then((signal) => {
    drainMs = signal === "SIGTERM" ? drainSeconds * 1000 : 0;
    stop.abort();
  });
  await worker.run(stop.signal, () => drainMs);
}

async function metricsListener(flags: WorkerFlags): Promise<Listener | null> {
  const { metricsHost, metricsPort } = flags;
  if (metricsPort === undefined) return null;
  const loading = standIn("loading", "The model is being loaded. Try again soon.");
  return await Listener.open(metricsHost, metricsPort, loading);
}

/** A backend that was opened again may be another device's, of which the probe says nothing. */
function identityOfWorker(engine: Engine): () => WorkerIdentity {
  const name = `${hostname()}-${process.pid}`;
  const { model, identity } = engine.info;
  const { weights, probe } = identity!;
  const build = packageVersion();
  const probed = deviceClassOf(engine.info.backend);
  return () => {
    const device = deviceClassOf(engine.info.backend);
    return { name, model, build, device, weights, probe: device === probed ? probe : "none" };
  };
}

async function tell(
  request: Request,
  fetch: (request: Request) => Response | Promise<Response>,
  worker: BatchWorker,
): Promise<Response> {
  const { pathname } = new URL(request.url);
  if (!told.includes(pathname)) {
    const message =
      "This is a worker: it tells /health and /metrics, and takes requests from its queue.";
    return errorReply(new DeltafoldError("unknown_url", message, { status: 404 }));
  }
  const reply = await fetch(request);
  if (pathname !== "/metrics" || request.method !== "GET") return reply;
  const text = (await reply.text()) + (await worker.metrics());
  return new Response(text, { headers: { "Content-Type": expositionType } });
}
