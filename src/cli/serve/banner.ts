import type { EngineInfo } from "../../engine.ts";
import { bytesText } from "../format.ts";

/** What the flags said that the engine doesn't tell. */
export interface Asked {
  /** Requests that may wait. */
  readonly queue: number;
  /** Bytes of disk for cached prompts. */
  readonly spillGib: number;
  /** What stands for a key in a shell; null: requests need none. */
  readonly shellKey: string | null;
}

/**
 * What a server says once it is ready.
 * @param availableBytes what there was for the model; null: nobody knows
 */
export function banner(
  url: string,
  info: EngineInfo,
  asked: Asked,
  availableBytes: number | null,
): string {
  const { model, backend } = info;
  return `${[
    `serving ${model} at ${url}/v1`,
    `  backend  ${backend.name}: ${backend.device} (${backend.arithmetic})`,
    `  context  ${contextText(info)}`,
    `  streams  ${backend.slots} at once; ${asked.queue} more may wait; ${cacheText(info, asked)}`,
    `  memory   ${memoryText(info, availableBytes)}`,
    "Try:",
    `  ${curlLine(url, info, asked)}`,
  ].join("\n")}\n`;
}

/** For addresses that other machines can reach. */
export function exposedWarning(host: string): string {
  return `${host} is open to other machines, and requests need no key.`;
}

function contextText({ contextTokens, backend }: EngineInfo): string {
  const { contextMax } = backend.shape;
  const less = contextTokens < contextMax ? ` of the ${contextMax} that the model supports` : "";
  return `${contextTokens} tokens${less}`;
}

function cacheText({ promptCacheBytes }: EngineInfo, { spillGib }: Asked): string {
  if (promptCacheBytes === 0) return "no prompt cache";
  const disk = spillGib > 0 ? `, ${bytesText(spillGib)} on disk` : "";
  return `prompt cache of ${bytesText(promptCacheBytes)}${disk}`;
}

/** A cached prompt's pages are KV; its state is taken when it is needed, and may be the most of it. */
function memoryText(info: EngineInfo, availableBytes: number | null): string {
  const { backend, promptCacheBytes } = info;
  const { weightBytes, stateBytes, kvBytes, workspaceBytes } = backend.memory;
  const parts: [number, string][] = [
    [weightBytes, "weights"],
    [stateBytes, "state"],
    [kvBytes, "KV"],
    [workspaceBytes, "workspace"],
  ];
  if (promptCacheBytes > 0) parts.push([promptCacheBytes, "cached states at most"]);
  const sum = parts.map(([bytes, name]) => `${bytesText(bytes)} ${name}`).join(" + ");
  const total = parts.reduce((bytes, [part]) => bytes + part, 0);
  const of = availableBytes === null ? "" : ` of ${bytesText(availableBytes)} available`;
  return `${sum} = ${bytesText(total)}${of}`;
}

/** A request to paste into a shell of this machine. */
function curlLine(url: string, { model, chat }: EngineInfo, { shellKey }: Asked): string {
  const target = new URL(`${url}/v1/${chat ? "chat/completions" : "completions"}`);
  // Such a server listens at every address, but can't be called by that name everywhere.
  if (target.hostname === "0.0.0.0") target.hostname = "127.0.0.1";
  if (target.hostname === "[::]") target.hostname = "[::1]";
  const text = "What is 37 + 5?";
  const prompt = chat ? { messages: [{ role: "user", content: text }] } : { prompt: text };
  const body = JSON.stringify({ model, ...prompt });
  const key = shellKey === null ? "" : ` -H "Authorization: Bearer ${shellKey}"`;
  const type = " -H 'Content-Type: application/json'";
  return `curl ${target}${key}${type} -d '${body.replaceAll("'", "'\\''")}'`;
}
