import { pause } from "../../clock.ts";
import type { Engine } from "../../engine.ts";
import { standIn } from "../../serve/stand-in.ts";
import type { Fetch, Listener } from "./listener.ts";
import type { ListenFlags } from "./options.ts";
import type { Reporter } from "./reporter.ts";

type DrainFlags = Pick<ListenFlags, "drainDelaySeconds" | "drainSeconds">;

/**
 * What a server does from SIGTERM on: for a while it only says that it isn't ready, so that balancers
 * send requests elsewhere before it refuses any; then it lets replies end. What is left, the engine ends.
 * It goes on listening: who asks whether it is ready must hear that it isn't.
 */
export async function drain(
  { counts }: Pick<Engine, "counts">,
  listener: Listener,
  { drainDelaySeconds: delaySeconds, drainSeconds }: DrainFlags,
  { note }: Pick<Reporter, "note">,
): Promise<void> {
  if (delaySeconds > 0) {
    listener.fetch = unready(listener.fetch);
    note(`stopping: not ready from now on, and refusing requests in ${delaySeconds} s`);
    await pause(delaySeconds * 1000);
  }
  refuse(listener);
  const replies = counts.running + counts.waiting;
  const last = drainSeconds > 0 && replies > 0;
  note(last ? `stopping: ${replies} to end, within ${drainSeconds} s` : "stopping");
  if (drainSeconds > 0) await Promise.race([listener.drained(), pause(drainSeconds * 1000)]);
}

/** Takes no more requests. */
export function refuse(listener: Listener): void {
  listener.fetch = stopping;
}

const stopping = standIn("stopping", "The server is stopping.");

/** Serves on, but says that it isn't ready, and keeps no connection: clients open the next elsewhere. */
const unready =
  (serve: Fetch): Fetch =>
  (request, connection) => {
    connection.outgoing.shouldKeepAlive = false;
    const { pathname } = new URL(request.url);
    return pathname === "/health/ready" ? stopping(request) : serve(request, connection);
  };
