import { afterAll, expect, it, onTestFinished } from "vitest";
import { openEngine } from "../../node.ts";
import { type TestIo, testIo } from "../io.cases.ts";
import { chat } from "./chat.ts";

const engine = await openEngine("nano", { threads: 1, sampling: { temperature: 0 } });
afterAll(() => engine[Symbol.asyncDispose]());

/** A chat on a terminal that is driven key by key. */
function begin(maxTokens: number): { io: TestIo; ended: Promise<void> } {
  const io = testIo(true);
  const request = { maxTokens, ignoreEos: true };
  const ended = chat(io, engine, { system: null, request, quiet: false });
  onTestFinished(async () => {
    io.stdin.end();
    await ended;
  });
  return { io, ended };
}

it("replies, and Ctrl-C stops the reply but not the chat", async () => {
  const { io, ended } = begin(4000);
  let at = await io.stderr.until("/help lists the commands.");
  io.stdin.write("Tell me a story.\r");
  await io.stdout.until("h");
  io.signals.emit("SIGINT");
  at = await io.stderr.until("stopped\n", at);
  io.stdin.write("/help\r");
  await io.stderr.until("forget what was said", at);
  io.stdin.write("/exit\r");
  await ended;
  expect(engine.counts).toEqual({ waiting: 0, running: 0 });
  expect(io.signals.listenerCount("SIGINT")).toBe(0);
});

it("drops a begun line at Ctrl-C, and leaves at the second on an empty one", async () => {
  const { io, ended } = begin(4);
  let at = await io.stderr.until("> ");
  io.stdin.write("half a question\x03");
  at = await io.stderr.until("> ", at);
  io.stdin.write("\x03");
  await io.stderr.until("Ctrl-C again, or Ctrl-D, leaves the chat.", at);
  io.stdin.write("\x03");
  await ended;
  expect(io.stdout.text).toBe("");
});

it("leaves at Ctrl-D", async () => {
  const { io, ended } = begin(4);
  await io.stderr.until("> ");
  io.stdin.write("\x04");
  await ended;
});

it("takes lines that were pasted at once, one after the other", async () => {
  const { io, ended } = begin(3);
  await io.stderr.until("> ");
  io.stdin.write("One\rTwo\r/exit\r");
  await ended;
  expect(io.stderr.text.match(/3 tokens/g)).toHaveLength(2);
});

it("obeys commands, and says so of those it doesn't know", async () => {
  const { io } = begin(4);
  let at = await io.stderr.until("> ");
  const replies = [
    ["/reset", "The chat starts over.\n"],
    ["/system Be brief.", "The chat starts over with this system message.\n"],
    ["/system", "The chat starts over with no system message.\n"],
    ["/quit", "There is no command /quit; /help lists them.\n"],
  ];
  for (const [line, reply] of replies) {
    io.stdin.write(`${line}\r`);
    at = await io.stderr.until(reply!, at);
  }
});

it("goes on after a turn that doesn't fit", async () => {
  const { io } = begin(10);
  await io.stderr.until("> ");
  io.stdin.write(`${"word ".repeat(5000)}\r`);
  const at = await io.stderr.until("deltafold: This model's maximum context length is 4096 tokens");
  io.stdin.write("Hello\r");
  await io.stderr.until("10 tokens", at);
});
