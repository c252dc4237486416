import { afterAll, expect, test } from "vitest";
import type { TokenId } from "../ids.ts";
import { byteAlphabet } from "../text/byte-alphabet.ts";
import { replyCases } from "../text/replies.cases.ts";
import { parseReply, type ReplyParserOptions } from "../text/reply-parser.ts";
import { endServers, Script, testServer, tokenizer } from "./engine.cases.ts";
import { chatPath, type Delta, eventsOf, hello, joined, replyTo, textPath } from "./http.cases.ts";

const script = new Script();
// Passes take no turn of the event loop: there are thousands of replies.
const server = testServer({ logits: script.logits, computed: async () => {} });
const { app } = server;
afterAll(() => endServers(server));

/** The token of each byte alone. */
const byteTokens = new Map<number, TokenId>(
  [...byteAlphabet].map(([letter, byte]) => [byte, tokenizer.idOf(letter)!]),
);

/** Tokens that say a text's bytes one by one, as no tokenizer would write them. */
const byBytes = (bytes: Uint8Array): TokenId[] => [...bytes].map((byte) => byteTokens.get(byte)!);

/**
 * The tokens of a text of which none crosses the byte `at`: pieces are encoded apart, and a character
 * that is cut is said by its bytes.
 */
function cutAt(text: string, at: number): TokenId[] {
  const bytes = new TextEncoder().encode(text);
  const inside = (index: number) => ((bytes[index] ?? 0) & 0xc0) === 0x80;
  let start = at;
  while (inside(start)) start--;
  let end = at;
  while (inside(end)) end++;
  const said = (from: number, to: number) =>
    tokenizer.encode(new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.slice(from, to)));
  return [...said(0, start), ...byBytes(bytes.slice(start, end)), ...said(end, bytes.length)];
}

/** A text's tokens with a cut at every byte in turn, without any, and with all. */
function* splits(text: string): Generator<TokenId[]> {
  yield tokenizer.encode(text);
  const bytes = new TextEncoder().encode(text);
  yield byBytes(bytes);
  for (let at = 1; at < bytes.length; at++) yield cutAt(text, at);
}

/** What tests look at, of whole replies, streams and the parser alike. */
type Said = Pick<ReturnType<typeof joined>, "content" | "reasoning" | "calls">;

function messageOf({ content, reasoning_content, tool_calls }: Delta): Said {
  const calls = (tool_calls ?? []).map((call) => ({
    name: call.function.name!,
    arguments: call.function.arguments,
  }));
  return { content: content ?? "", reasoning: reasoning_content ?? "", calls };
}

/** Fails unless the reply says `expected`, and ends as it must, whole and streamed. */
async function expectSaid(
  ids: readonly TokenId[],
  body: object,
  expected: Said,
  finish: string,
): Promise<void> {
  script.say(ids);
  const { message, finish_reason } = (await replyTo(app, chatPath, body)).choices[0]!;
  script.say(ids);
  const streamed = joined(await eventsOf(app, chatPath, body));
  // A comparison of objects for each would be most of the time.
  const wanted = JSON.stringify([expected, finish]);
  const whole = [messageOf(message!), finish_reason];
  if (JSON.stringify(whole) !== wanted) expect(whole, `${ids}`).toEqual([expected, finish]);
  const { content, reasoning, calls } = streamed;
  const parts = [{ content, reasoning, calls }, streamed.finish];
  if (JSON.stringify(parts) !== wanted) expect(parts, `${ids}`).toEqual([expected, finish]);
}

/** The request whose reply is parsed as the options say. */
const bodyFor = ({ reasoningOpen, tools, oneCall }: ReplyParserOptions): object => ({
  messages: hello,
  chat_template_kwargs: { enable_thinking: reasoningOpen },
  ...(tools && { tools }),
  parallel_tool_calls: !oneCall,
});

/** One of each kind: the parser's own tests cut them all. */
const kinds = [
  "an unfinished start",
  "a think block that isn't closed",
  "a tag in a think block",
  "half a call in a think block",
  "a call in a think block",
  "one call",
  "no tools",
  "escapes",
  "astral characters",
  "text in place of </tool_call>",
  "a call in place of </function>",
  "half a second call",
];
const cases = kinds.map((kind) => replyCases.find(({ what }) => what === kind)!);

test.each(cases)("$what: the same at every split", async (reply) => {
  const { text, options, content, reasoning, toolCalls } = reply;
  const { callsEnded = toolCalls.length } = reply;
  expect(parseReply(text, options)).toEqual({ content, reasoning, toolCalls });
  const finish = callsEnded > 0 ? "tool_calls" : "stop";
  for (const ids of splits(text)) {
    await expectSaid(ids, bodyFor(options), { content, reasoning, calls: toolCalls }, finish);
  }
});

const thinking: ReplyParserOptions = { reasoningOpen: true, tools: null, oneCall: false };
const calling: ReplyParserOptions = {
  ...thinking,
  tools: [{ type: "function", function: { name: "f" } }],
};
const call =
  "<tool_call>\n<function=f>\n<parameter=s>\na b\n</parameter>\n</function>\n</tool_call>";

const stopped: [
  what: string,
  text: string,
  stop: string[],
  upTo: string,
  options: ReplyParserOptions,
][] = [
  ["in the reasoning", "Hm, é so.\n</think>\n\nYes.", ["é so"], "Hm, ", thinking],
  [
    "in the content",
    "Hm.\n</think>\n\nYes \u{1F980} no.",
    ["\u{1F980} n"],
    "Hm.\n</think>\n\nYes ",
    thinking,
  ],
  ["across both", "Hm.\n</think>\n\nYes.", ["think>\n\nY"], "Hm.\n</", thinking],
  ["the longer of two", "Hm.\n</think>\n\nabcab", ["b", "ab", "bc"], "Hm.\n</think>\n\n", thinking],
  ["almost", "Hm.\n</think>\n\nababac", ["abac!", "bb"], "Hm.\n</think>\n\nababac", thinking],
  ["within almost", "Hm.\n</think>\n\nababac", ["abac"], "Hm.\n</think>\n\nab", thinking],
  [
    "in an argument",
    `Hm.\n</think>\n\n${call}`,
    ["a b"],
    `Hm.\n</think>\n\n${call.slice(0, call.indexOf("a b"))}`,
    calling,
  ],
  ["behind a call", `Hm.\n</think>\n\n${call} end`, [" end"], `Hm.\n</think>\n\n${call}`, calling],
];

test.each(stopped)("a stop string %s: the same at every split", async (...row) => {
  const [, text, stop, upTo, options] = row;
  const { toolCalls: calls, ...parts } = parseReply(upTo, options);
  const finish = upTo.endsWith("</tool_call>") ? "tool_calls" : "stop";
  for (const ids of splits(text)) {
    await expectSaid(ids, { ...bodyFor(options), stop }, { ...parts, calls }, finish);
  }
});

test.each(stopped)(
  "a completion with a stop string %s: the same at every split",
  async (...row) => {
    const [, text, stop, upTo] = row;
    const body = { prompt: "Once", stop };
    const found = upTo === text ? null : stop.filter((each) => text.startsWith(upTo + each));
    for (const ids of splits(text)) {
      script.say(ids);
      const reply = await replyTo(app, textPath, body);
      script.say(ids);
      const events = await eventsOf(app, textPath, body);
      const joinedText = events.map(({ choices }) => choices[0]!.text).join("");
      for (const said of [reply.choices[0]!.text, joinedText]) {
        if (said !== upTo) expect(said, `${ids}`).toBe(upTo);
      }
      for (const { stop_sequence } of [reply, events.at(-1)!]) {
        if (found) expect(found).toContain(stop_sequence);
        else expect(stop_sequence).toBeNull();
      }
    }
  },
);
