import type { Engine, ReplyRequest } from "../../engine.ts";
import type { Stream } from "../../stream.ts";
import { errorLine, isUserError } from "../exit.ts";
import type { CliIo } from "../io.ts";
import { Conversation } from "./conversation.ts";
import { printReply, speedLine } from "./print-reply.ts";
import { PromptReader } from "./prompt-reader.ts";

const help = `  /reset         forget what was said
  /system TEXT   start over with this system message, or with none
  /help          this list
  /exit          leave, as Ctrl-D does
Ctrl-C stops a reply.
`;

export interface ChatOptions {
  readonly system: string | null;
  /** What every turn asks for. */
  readonly request: ReplyRequest;
  readonly quiet: boolean;
}

/** Chats until the user leaves. What one turn does wrong is told, and the chat goes on. */
export async function chat(io: CliIo, engine: Engine, options: ChatOptions): Promise<void> {
  const { model, backend } = engine.info;
  if (!options.quiet) {
    io.stderr.write(`${model} on ${backend.name}, ${backend.device}. /help lists the commands.\n`);
  }
  const conversation = new Conversation(options.system);
  using lines = new PromptReader(io);
  let stream: Stream | null = null;
  const interrupt = () => {
    if (stream) stream.cancel();
    else lines.close();
  };
  io.signals.on("SIGINT", interrupt);
  try {
    for (;;) {
      const line = (await lines.next())?.trim();
      if (line === undefined || line === "/exit") return;
      if (line === "") continue;
      if (line.startsWith("/")) {
        io.stderr.write(obey(line, conversation));
        continue;
      }
      try {
        stream = engine.chat({ messages: conversation.asked(line), ...options.request });
        const done = await printReply(io, stream);
        conversation.add(line, done);
        if (!options.quiet) io.stderr.write(speedLine(done));
      } catch (error) {
        if (!isUserError(error)) throw error;
        io.stderr.write(errorLine(error));
      } finally {
        stream = null;
      }
    }
  } finally {
    io.signals.off("SIGINT", interrupt);
  }
}

/** Does what a line with a slash says, and returns what to tell the user. */
function obey(line: string, conversation: Conversation): string {
  const [command = "", text = ""] = split(line);
  if (command === "/help") return help;
  if (command === "/reset") {
    conversation.reset();
    return "The chat starts over.\n";
  }
  if (command === "/system") {
    conversation.setSystem(text === "" ? null : text);
    return `The chat starts over with ${text === "" ? "no" : "this"} system message.\n`;
  }
  return `There is no command ${command}; /help lists them.\n`;
}

/** The first word, and what follows it. */
function split(line: string): [string, string] {
  const end = line.search(/\s/);
  return end < 0 ? [line, ""] : [line.slice(0, end), line.slice(end).trim()];
}
