import { expect, test } from "vitest";
import { type ReplyCase, replyCases } from "./replies.cases.ts";
import { joinParts, ReplyParser, type ReplyPart } from "./reply-parser.ts";

/** What a reply that comes in these pieces is taken for, as text. */
function taken(pieces: readonly string[], { options }: ReplyCase): string {
  const parser = new ReplyParser(options);
  const parts: ReplyPart[] = [];
  for (const piece of pieces) parts.push(...parser.push(piece));
  parts.push(...parser.end());
  return JSON.stringify([joinParts(parts), parser.callsEnded]);
}

/** The text cut in three, in every way. */
function* inThree(text: string): Generator<readonly string[]> {
  for (let first = 0; first <= text.length; first++) {
    for (let second = first; second <= text.length; second++) {
      yield [text.slice(0, first), text.slice(first, second), text.slice(second)];
    }
  }
}

test.each(replyCases)("$what: the same however it is cut", (reply) => {
  const { text, reasoning, content, toolCalls, callsEnded = toolCalls.length } = reply;
  const expected = JSON.stringify([{ reasoning, content, toolCalls }, callsEnded]);
  expect(taken([text], reply)).toBe(expected);
  expect(taken(text.split(""), reply)).toBe(expected);
  for (const pieces of inThree(text)) {
    // A comparison for each would be most of the time.
    if (taken(pieces, reply) !== expected)
      expect(taken(pieces, reply), pieces.join("|")).toBe(expected);
  }
});

test.each(replyCases)("$what: nothing is sent that isn't meant", ({ text, options, ...reply }) => {
  const parser = new ReplyParser(options);
  const sent: ReplyPart[] = [];
  for (const unit of text.split("")) {
    sent.push(...parser.push(unit));
    const { reasoning, content, toolCalls } = joinParts(sent);
    expect(reply.reasoning.startsWith(reasoning)).toBe(true);
    expect(reply.content.startsWith(content)).toBe(true);
    for (const [index, { name, arguments: written }] of toolCalls.entries()) {
      expect(name).toBe(reply.toolCalls[index]!.name);
      expect(reply.toolCalls[index]!.arguments.startsWith(written)).toBe(true);
    }
  }
  for (const part of sent) expect(part.type === "toolCall" || part.text !== "").toBe(true);
});

test.each(replyCases)("$what: the arguments of calls that ended are JSON", (reply) => {
  const { toolCalls, callsEnded = toolCalls.length } = reply;
  for (const [index, { arguments: written }] of toolCalls.entries()) {
    const object = () => Object.keys(JSON.parse(written) as object);
    if (index < callsEnded) expect(object()).toBeInstanceOf(Array);
    else expect(object).toThrow(SyntaxError);
  }
});
