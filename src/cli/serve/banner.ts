import type { EngineInfo } from "../../engine.ts";
import { bytesText } from "../format.ts";

/** What a server says once it is ready. */
export function banner(url: string, info: EngineInfo, availableBytes: number): string {
  const { model, backend, contextTokens } = info;
  return `${[
    `serving ${model} at ${url}/v1`,
    `  backend  ${backend.name}: ${backend.device} (${backend.arithmetic})`,
    `  context  ${contextTokens} tokens`,
    `  memory   ${memoryText(info, availableBytes)}`,
    "Try:",
    `  ${curlLine(url, info)}`,
  ].join("\n")}\n`;
}

/** For addresses that other machines can reach. */
export function exposedWarning(host: string): string {
  return `warning: ${host} is open to other machines, and requests need no key in this version.\n`;
}

function memoryText({ backend }: EngineInfo, availableBytes: number): string {
  const { weightBytes, stateBytes, kvBytes, workspaceBytes } = backend.memory;
  const parts: [number, string][] = [
    [weightBytes, "weights"],
    [stateBytes, "state"],
    [kvBytes, "KV"],
    [workspaceBytes, "workspace"],
  ];
  const sum = parts.map(([bytes, name]) => `${bytesText(bytes)} ${name}`).join(" + ");
  const total = parts.reduce((bytes, [part]) => bytes + part, 0);
  return `${sum} = ${bytesText(total)} of ${bytesText(availableBytes)} available`;
}

/** A request to paste into a shell of this machine. */
function curlLine(url: string, { model, chat }: EngineInfo): string {
  const target = new URL(`${url}/v1/${chat ? "chat/completions" : "completions"}`);
  // Such a server listens at every address, but can't be called by that name everywhere.
  if (target.hostname === "0.0.0.0") target.hostname = "127.0.0.1";
  if (target.hostname === "[::]") target.hostname = "[::1]";
  const text = "What is 37 + 5?";
  const prompt = chat ? { messages: [{ role: "user", content: text }] } : { prompt: text };
  const body = JSON.stringify({ model, ...prompt });
  return `curl ${target} -H 'Content-Type: application/json' -d '${body.replaceAll("'", "'\\''")}'`;
}
