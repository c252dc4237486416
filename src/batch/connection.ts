import { Redis } from "ioredis";
import { pause } from "../clock.ts";
import { DeltafoldError, InputError } from "../errors.ts";

const connectMs = 5000;
const againMsMax = 2000;

/** The queue server isn't there, or doesn't let us in. */
export class QueueError extends DeltafoldError {
  constructor(code: string, message: string, cause?: unknown) {
    super(code, message, { status: 503, cause });
  }
}

/** A server of queues, by its address. */
export interface QueueAddress {
  /** Without a password. */
  readonly name: string;
  readonly options: {
    readonly host: string;
    readonly port: number;
    readonly db: number;
    readonly username?: string;
    readonly password?: string;
    /** Present: encrypted. */
    readonly tls?: Record<string, never>;
  };
}

/** @throws InputError, which doesn't show the address: it may hold a password */
export function parseQueueUrl(text: string): QueueAddress {
  const url = URL.canParse(text) ? new URL(text) : null;
  const db = /^\/?(\d{0,4})$/.exec(url?.pathname ?? "")?.[1];
  const secure = url?.protocol === "rediss:";
  const known = url !== null && (secure || url.protocol === "redis:") && url.hostname !== "";
  if (!known || db === undefined || url.search !== "" || url.hash !== "") {
    throw new InputError("The queue must be redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE].");
  }
  const port = url.port === "" ? 6379 : Number(url.port);
  return {
    name: `${url.protocol}//${url.hostname}:${port}${db === "" ? "" : `/${db}`}`,
    options: {
      // IPv6 addresses have brackets in a URL alone.
      host: url.hostname.replace(/^\[(.*)\]$/, "$1"),
      port,
      db: Number(db),
      ...(url.username !== "" && { username: decodeURIComponent(url.username) }),
      ...(url.password !== "" && { password: decodeURIComponent(url.password) }),
      ...(secure && { tls: {} }),
    },
  };
}

/**
 * Connects. A server that isn't there at once is an error; one that goes away later is waited for.
 * @param onLost hears when it went, and when it is back
 * @throws QueueError
 */
export async function connectQueue(
  { name, options }: QueueAddress,
  onLost: (message: string) => void,
): Promise<Redis> {
  let connected = false;
  const client = new Redis({
    ...options,
    lazyConnect: true,
    connectTimeout: connectMs,
    // What was asked meanwhile is asked again, however long that takes.
    maxRetriesPerRequest: null,
    retryStrategy: (times) => (connected ? Math.min(100 * times, againMsMax) : null),
  });
  const failed = new Promise<never>((_, reject) => {
    client.on("error", (cause: Error) => reject(queueError(name, cause)));
  });
  const silent = pause(connectMs).then(() => {
    throw queueError(name, new Error("it says nothing"));
  });
  const opened = client.connect().then(() => client.ping());
  // Whichever comes first has the reason.
  for (const each of [failed, silent, opened]) each.catch(() => {});
  try {
    await Promise.race([failed, silent, opened.catch(() => failed)]);
  } catch (error) {
    client.disconnect();
    throw error;
  }
  connected = true;
  let lost = false;
  client.on("close", () => {
    if (client.status === "end" || lost) return;
    lost = true;
    onLost(`the queue ${name} is gone; waiting for it`);
  });
  client.on("ready", () => {
    if (lost) onLost(`the queue ${name} is back`);
    lost = false;
  });
  return client;
}

/** What the server answers to a command that it doesn't take, as when its memory or disk is full. */
export const isRefusal = (error: unknown): error is Error =>
  error instanceof Error && error.name === "ReplyError";

/** Warns of a refusal. Of a server that is gone, its connection says (connectQueue). */
export function warnOfRefusal(error: unknown, warn: (message: string) => void): void {
  if (isRefusal(error)) warn(refusedError(error).message);
}

/** @param error of a command */
export const refusedError = (error: Error): QueueError =>
  new QueueError("queue_refused", `The queue refuses it: ${error.message}.`, error);

function queueError(name: string, cause: Error & { readonly code?: string }): QueueError {
  if (/^(NOAUTH|WRONGPASS|NOPERM)|without any password|invalid password/.test(cause.message)) {
    const message = `The queue ${name} refuses this user and password: give redis://USER:PASSWORD@HOST.`;
    return new QueueError("queue_unauthorized", message, cause);
  }
  const reasons = new Map([
    ["ECONNREFUSED", "nothing listens there"],
    ["ENOTFOUND", "there is no such host"],
    ["ETIMEDOUT", "it doesn't answer"],
  ]);
  const reason = reasons.get(cause.code ?? "") ?? cause.message;
  return new QueueError("queue_unreachable", `The queue ${name} can't be used: ${reason}.`, cause);
}
