import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { endsInOpenThink } from "./chat-template.ts";
import { Detokenizer } from "./detokenize.ts";
import { joinParts, ReplyParser } from "./reply-parser.ts";
import { StopMatcher } from "./stop-strings.ts";
import { Tokenizer } from "./tokenizer.ts";

interface GoldenCase {
  name: string;
  prompt: string;
  prompt_ids: number[];
  greedy_ids: number[];
  text: string;
}

const golden = new URL("../../fixtures/golden/nano_greedy.json", import.meta.url);
const runs: Record<string, GoldenCase[]> = JSON.parse(readFileSync(golden, "utf8")).runs;
const cases = Object.entries(runs).flatMap(([run, all]) => all.map((each) => ({ run, ...each })));
const nano = new URL("../../models/nano/tokenizer.json", import.meta.url);
const tokenizer = Tokenizer.fromJson(readFileSync(nano, "utf8"), null, "nano/tokenizer.json");

test.each(cases)("golden $run $name: prompt to ids, ids to text", (row) => {
  expect(tokenizer.encode(row.prompt)).toEqual(row.prompt_ids);
  expect(tokenizer.decode(row.greedy_ids)).toBe(row.text);
  const detokenizer = new Detokenizer(tokenizer, { skipSpecial: false });
  const pieces = row.greedy_ids.map((id) => detokenizer.push(id));
  expect(pieces.join("") + detokenizer.flush()).toBe(row.text);
});

test("ids through detokeniser, stop strings and parser: a call", () => {
  const { prompt, greedy_ids } = cases.find(({ name }) => name === "tool")!;
  const detokenizer = new Detokenizer(tokenizer, { skipSpecial: true });
  const stops = new StopMatcher(["\n</tool"]);
  const parser = new ReplyParser({
    reasoningOpen: endsInOpenThink(prompt),
    tools: [],
    oneCall: false,
  });
  const events = greedy_ids.flatMap((id) => parser.push(stops.push(detokenizer.push(id)).text));
  const last = stops.push(detokenizer.flush()).text + stops.flush();
  // The stop cuts the call's closing tag, and the call is whole without it.
  expect(joinParts([...events, ...parser.push(last), ...parser.end()])).toEqual({
    reasoning: "I should call get_weather.",
    content: "",
    toolCalls: [{ name: "get_weather", arguments: '{"city":"Paris"}' }],
  });
});
