import { styleText } from "node:util";
import type { ReplyEvent } from "../../engine.ts";
import type { Reply, Stream } from "../../stream.ts";
import type { CliIo, OutputStream } from "../io.ts";

/** What printing needs of a stream. */
export type ReplyParts = AsyncIterable<ReplyEvent> & Pick<Stream, "result">;

/**
 * Prints a reply as it comes: on a terminal its reasoning dimmed and then the answer, elsewhere the
 * answer alone. It ends in a line end.
 */
export async function printReply({ stdout }: CliIo, stream: ReplyParts): Promise<Reply> {
  let last = "";
  let kind: "reasoning" | "content" | null = null;
  const write = (text: string) => {
    stdout.write(text);
    last = text;
  };
  try {
    for await (const event of stream) {
      if (event.type !== "reasoning" && event.type !== "content") continue;
      if (event.type === "reasoning" && !stdout.isTTY) continue;
      if (kind === "reasoning" && event.type === "content") write("\n\n");
      kind = event.type;
      write(shown(stdout, event.type, event.text));
    }
    return await stream.result;
  } finally {
    if (!last.endsWith("\n") && kind !== null) stdout.write("\n");
  }
}

function shown(stdout: OutputStream, kind: "reasoning" | "content", text: string): string {
  if (!stdout.isTTY) return text;
  // A reply must not steer the terminal.
  const harmless = text.replace(/(?![\n\t])\p{Cc}/gu, "\ufffd");
  if (kind === "content") return harmless;
  // Each piece is dimmed by itself, so that none leaves the terminal dim where it is the last.
  return styleText("dim", harmless, { stream: stdout });
}

/** What a reply cost, as a line. */
export function speedLine(done: Reply): string {
  const count = done.ids.length;
  const { tokensPerSecond } = done.timings;
  const parts = [`${count} token${count === 1 ? "" : "s"}`];
  if (tokensPerSecond !== null) parts.push(`${Math.round(tokensPerSecond)} tok/s`);
  if (done.finishReason === "length") parts.push("cut at its longest");
  if (done.finishReason === "cancelled") parts.push("stopped");
  return `${parts.join(", ")}\n`;
}
