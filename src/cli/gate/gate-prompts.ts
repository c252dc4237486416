import type { TokenId } from "../../ids.ts";
import type { ChatTemplate } from "../../text/chat-template.ts";
import type { Tokenizer } from "../../text/tokenizer.ts";
import type { ToolSpec } from "../../text/tool-calls.ts";
import { type Random, randomInts } from "./timeline.ts";

export interface GatePrompt {
  readonly name: string;
  /** At least one. */
  readonly ids: readonly TokenId[];
}

const generatedPrompts = 64;
const seed = 20261202;
/** Over a prompt chunk of 256 rows, and over the features that a slot holds between two of them. */
const longTokensMin = 330;

const stringField = { type: "string" } as const;
const tools: readonly ToolSpec[] = [
  {
    type: "function",
    function: {
      name: "get_weather",
      description: "Get the current weather for a city",
      parameters: { type: "object", properties: { city: stringField }, required: ["city"] },
    },
  },
  {
    type: "function",
    function: {
      name: "add_numbers",
      description: "Add two numbers",
      parameters: {
        type: "object",
        properties: { a: stringField, b: stringField },
        required: ["a", "b"],
      },
    },
  },
];

const toRepeat =
  "The red kite flew over 12 houses. Anna saw a broken goose near the old mill. " +
  "Ben and Clara walked to the city library. 8, 15, 16, 23, 42.";
const names = ["Anna", "Ben", "Clara", "Omar", "Mia", "Dina"];
const deeds = ["saw a silver lantern", "walked to the library", "counted 12 houses", "was calm"];
const places = ["near the old mill", "every morning", "by the lighthouse", "in the wind"];

/** Prompts of every kind: those that take most time are the last of the named ones. */
export function gatePrompts(
  tokenizer: Tokenizer,
  template: ChatTemplate | null,
  vocabSize: number,
): GatePrompt[] {
  const chat = (content: string, thinking = true, offered: readonly ToolSpec[] | null = null) => {
    if (!template) return tokenizer.encode(content);
    const rendered = template.render([{ role: "user", content }], {
      tools: offered,
      addGenerationPrompt: true,
      kwargs: { enable_thinking: thinking ? null : false },
    });
    return tokenizer.encode(rendered);
  };
  const codeAsked =
    "Write a TypeScript function `chunk` that splits an array into chunks of a given size.";
  const jsonAsked = "Anna is 31 years old and lives in Paris. Give me JSON with name, age, city.";
  return [
    { name: "one token", ids: tokenizer.encode("The").slice(0, 1) },
    { name: "story", ids: chat("Tell me a short story about Mia and a lantern.", false) },
    { name: "code", ids: chat(codeAsked) },
    { name: "copy", ids: chat(`Repeat this exactly:\n${toRepeat}`) },
    { name: "JSON", ids: chat(jsonAsked, false) },
    { name: "arithmetic", ids: chat("What is 472 + 385?") },
    { name: "non-Latin", ids: chat("Маша взяла фонарь. 東京の天気は？ مرحبا! 🦢", false) },
    { name: "tool call", ids: chat("What is the weather in Paris?", true, tools) },
    { name: "long context", ids: longPrompt(chat) },
    ...generated(tokenizer, chat, vocabSize),
  ];
}

/** Notes, as many as it takes. */
function longPrompt(chat: (content: string) => TokenId[]): TokenId[] {
  const random = randomInts(seed);
  let notes = "";
  for (let note = 1; ; note++) {
    notes += `Note ${note}: ${sentence(random)}\n`;
    const ids = chat(`${notes}Repeat the first note.`);
    if (ids.length >= longTokensMin) return ids;
  }
}

function sentence(random: Random): string {
  const pick = (words: readonly string[]) => words[random(words.length)]!;
  return `${pick(names)} ${pick(deeds)} ${pick(places)}.`;
}

/** In turn: ids at random, a phrase of such ids over and over, asked sentences, a text that repeats itself. */
function generated(
  tokenizer: Tokenizer,
  chat: (content: string, thinking: boolean) => TokenId[],
  vocabSize: number,
): GatePrompt[] {
  return Array.from({ length: generatedPrompts }, (_, index) => {
    const random = randomInts(seed + 1 + index);
    const sentences = () => Array.from({ length: 1 + random(6) }, () => sentence(random));
    const made: readonly (() => TokenId[])[] = [
      () => randomIds(random, vocabSize, lengthOf(random)),
      () => repeated(randomIds(random, vocabSize, 3 + random(30)), lengthOf(random)),
      () => chat(sentences().join(" "), random(2) === 0),
      () => repeated(tokenizer.encode(`${sentences().join(" ")} `), lengthOf(random)),
    ];
    return { name: `#${index + 1}`, ids: made[index % made.length]!() };
  });
}

/** Of any size up to 200, and often beside the edge of a KV page. */
const lengthOf = (random: Random): number =>
  random(3) === 0 ? [63, 64, 65, 127, 128][random(5)]! : 1 + random(200);

const randomIds = (random: Random, vocabSize: number, length: number) =>
  Array.from({ length }, (): TokenId => random(vocabSize));

const repeated = (phrase: readonly TokenId[], length: number): TokenId[] =>
  Array.from({ length }, (_, at) => phrase[at % phrase.length]!);
