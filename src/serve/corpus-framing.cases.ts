/** What is recorded of connections: bytes to a real socket, and bytes from it. */
import { connect } from "node:net";
import { Listener } from "../cli/serve/listener.ts";
import { IdNames, still } from "./corpus.cases.ts";
import { Script, testServer } from "./engine.cases.ts";

interface Connection {
  readonly what: string;
  /** Written one behind the other; each but the first waits until the answer so far holds a text. */
  readonly sends: readonly (string | { readonly once: string; readonly send: string })[];
  /** The client says that it sends no more, and still reads. */
  readonly halfCloses?: boolean;
}

const body = '{"prompt":"Once","max_tokens":2}';
const host = "Host: localhost\r\n";
const last = `${host}Connection: close\r\n`;
const json = "Content-Type: application/json\r\n";
const live = `GET /health/live HTTP/1.1\r\n`;
const post = "POST /v1/completions HTTP/1.1\r\n";
const sized = `Content-Length: ${body.length}\r\n\r\n`;
const chunked = "Transfer-Encoding: chunked\r\n\r\n";
const halves = [body.slice(0, 9), body.slice(9)];
const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;

const connections: readonly Connection[] = [
  { what: "one request", sends: [`${live}${last}\r\n`] },
  { what: "a head alone", sends: [`HEAD /v1/models HTTP/1.1\r\n${last}\r\n`] },
  { what: "two requests at once", sends: [`${live}${host}\r\n${live}${last}\r\n`] },
  {
    what: "a bad one and a good one at once",
    sends: [`GET /v1/unknown HTTP/1.1\r\n${host}\r\n${live}${last}\r\n`],
  },
  {
    what: "a refused body and a good request behind it",
    sends: [`${post}${host}Content-Type: text/plain\r\n${sized}${body}${live}${last}\r\n`],
  },
  { what: "a body in one piece", sends: [`${post}${last}${json}${sized}${body}`] },
  {
    what: "a body in chunks",
    sends: [`${post}${last}${json}${chunked}${halves.map(chunk).join("")}0\r\n\r\n`],
  },
  {
    what: "chunks with extensions and a trailer",
    sends: [`${post}${last}${json}${chunked}20;a=b\r\n${body}\r\n0\r\nX-Sum: 1\r\n\r\n`],
  },
  { what: "a chunk's size that is none", sends: [`${post}${last}${json}${chunked}zz\r\n`] },
  {
    what: "a body that waits to be asked for",
    sends: [
      `${post}${last}${json}Expect: 100-continue\r\n${sized}`,
      { once: "100 Continue", send: body },
    ],
  },
  {
    what: "an expectation that can't be met",
    sends: [`${post}${last}${json}Expect: tea\r\n${sized}`],
  },
  {
    what: "a client that sends no more",
    sends: [`${post}${host}${json}${sized}${body}`],
    halfCloses: true,
  },
  {
    what: "half a body and no more",
    sends: [`${post}${host}${json}${sized}${halves[0]}`],
    halfCloses: true,
  },
  { what: "half a head and no more", sends: [`${live}Host: loc`], halfCloses: true },
  { what: "nothing at all", sends: [""], halfCloses: true },
  {
    what: "an old client",
    sends: [`GET /health/live HTTP/1.0\r\n${host}\r\n`],
  },
  { what: "an older one, which names no host", sends: ["GET /health/live HTTP/1.0\r\n\r\n"] },
  { what: "no host", sends: [`${live}Connection: close\r\n\r\n`] },
  { what: "a host that is none", sends: [`${live}Host: a/b\r\n\r\n`] },
  { what: "a path that is none", sends: [`GET /v1\\messages HTTP/1.1\r\n${host}\r\n`] },
  {
    what: "a streamed reply",
    sends: [
      `${post}${last}${json}Content-Length: ${body.length + 14}\r\n\r\n${body.slice(0, -1)},"stream":true}`,
    ],
  },
  { what: "a method that isn't", sends: [`BREW / HTTP/1.1\r\n${last}\r\n`] },
  { what: "a newer HTTP", sends: [`GET / HTTP/3.0\r\n${last}\r\n`] },
  { what: "lines of another protocol", sends: ["\u0016\u0003\u0001\r\n\r\n"] },
  { what: "a header in two lines", sends: [`${live}${last}A: b\r\n c\r\n\r\n`] },
  { what: "a header without a name", sends: [`${live}${last}: b\r\n\r\n`] },
  { what: "two hosts", sends: [`${live}${host}${last}\r\n`] },
  { what: "two lengths", sends: [`${post}${last}${json}Content-Length: 1\r\n${sized}${body}`] },
  {
    what: "a length and chunks",
    sends: [`${post}${last}${json}Content-Length: 1\r\n${chunked}0\r\n\r\n`],
  },
  { what: "a length below nothing", sends: [`${post}${last}${json}Content-Length: -1\r\n\r\n`] },
];

/** @returns each connection as a text, in order */
export async function recordFraming(): Promise<string[]> {
  const script = new Script();
  const { app, engine } = testServer({
    logits: script.logits,
    parts: { clock: still, cache: { bytesMax: 0, spill: null } },
    app: { pingMs: 0, clock: still },
  });
  const listener = await Listener.open("127.0.0.1", 0, app.fetch);
  const texts: string[] = [];
  for (const each of connections) {
    script.say("a b");
    const answer = await answerTo(Number(new URL(listener.url).port), each);
    texts.push(new IdNames().hide(textOf(each, answer)));
  }
  await engine[Symbol.asyncDispose]();
  await listener[Symbol.asyncDispose]();
  return texts;
}

/** All that comes back until the server hangs up. */
async function answerTo(port: number, { sends, halfCloses }: Connection): Promise<string> {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  const rest = sends.slice(1) as { readonly once: string; readonly send: string }[];
  let answer = "";
  socket.setEncoding("utf8");
  socket.on("data", (text: string) => {
    answer += text;
    if (rest.length > 0 && answer.includes(rest[0]!.once)) socket.write(rest.shift()!.send);
  });
  const ended = new Promise((resolve, reject) => {
    socket.once("end", resolve);
    socket.once("error", reject);
  });
  socket.write(sends[0] as string);
  if (halfCloses) socket.end();
  await ended;
  socket.destroy();
  return answer;
}

function textOf({ what, sends, halfCloses }: Connection, answer: string): string {
  const sent = sends.map((each) => (typeof each === "string" ? each : each.send));
  const lines = (text: string, mark: string) =>
    text.split("\r\n").map((line) => `${mark} ${JSON.stringify(line).slice(1, -1)}`.trimEnd());
  return [
    `## ${what}`,
    ...sent.flatMap((text) => lines(text, ">")),
    ...(halfCloses ? ["> (no more)"] : []),
    ...lines(answer.replace(/^Date: .*\r\n/gim, ""), "<"),
  ]
    .map((line) => line.replaceAll('\\"', '"'))
    .join("\n");
}
