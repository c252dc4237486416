import type { ChatMessage } from "../../text/chat-messages.ts";
import type { ToolSpec } from "../../text/tool-calls.ts";

/** A call as a reply has it, and what it results in. */
export interface ScriptedCall {
  readonly call: { readonly name: string; readonly arguments: string };
  readonly result: string;
}

/** What a user says, and what comes of it. */
export interface ScriptedTurn {
  readonly text: string;
  /** What the assistant calls before it answers. */
  readonly calls?: readonly ScriptedCall[];
  /** Whether the model's own calls, where it makes any, take their place. */
  readonly ownCalls?: boolean;
}

function tool(name: string, description: string, fields: Record<string, string>): ToolSpec {
  const properties = Object.entries(fields).map(([field, about]) => [
    field,
    { type: "string", description: about },
  ]);
  const parameters = {
    type: "object",
    properties: Object.fromEntries(properties),
    required: Object.keys(fields),
  };
  return { type: "function", function: { name, description, parameters } };
}

export const resumeTools: readonly ToolSpec[] = [
  tool("get_weather", "Get the current weather for a city", { city: "Name of the city" }),
  tool("add_numbers", "Add two numbers", { a: "The first number", b: "The second number" }),
  tool("find_book", "Look for a book in the city library", { title: "The title, or part of it" }),
];

export const resumeSystem: ChatMessage = {
  role: "system",
  content:
    "You are a helpful assistant for people who travel. Keep every answer short, and call a " +
    "function where one helps.",
};

function called(name: string, fields: Record<string, string>, result: string): ScriptedCall {
  return { call: { name, arguments: JSON.stringify(fields) }, result };
}

/** Twelve; a shorter conversation is the first of them. */
export const resumeTurns: readonly ScriptedTurn[] = [
  {
    text: "What is the weather in Paris?",
    calls: [called("get_weather", { city: "Paris" }, "Sunny, 21 degrees")],
    ownCalls: true,
  },
  { text: "Tell me a short story about Mia and a lantern." },
  {
    text: "What is 472 + 385, and what is 12 + 30?",
    calls: [
      called("add_numbers", { a: "472", b: "385" }, "857"),
      called("add_numbers", { a: "12", b: "30" }, "42"),
    ],
  },
  { text: "Repeat this exactly: the red kite flew over 12 houses." },
  { text: "Anna is 31 years old and lives in Paris. Give me JSON with name, age, city." },
  { text: "Маша взяла фонарь. 東京の天気は？ 🦢" },
  {
    text: "Is there a book about the old mill?",
    calls: [called("find_book", { title: "old mill" }, "The Old Mill, by D. Moss. 2 copies.")],
    ownCalls: true,
  },
  { text: "Who saw the broken goose?" },
  { text: "Write a TypeScript function `chunk` that splits an array into chunks." },
  {
    text: "Is it raining in Lima?",
    calls: [called("get_weather", { city: "Lima" }, "Rain\nand wind, 16 degrees")],
  },
  { text: "What did Clara count by the lighthouse?" },
  { text: "Now tell me the end of the story." },
];

const seen = ["a silver lantern", "the old mill", "12 houses", "a calm lake", "a red kite"];

/** A text of so many sentences. */
export const longText = (sentences: number): string =>
  Array.from(
    { length: sentences },
    (_, at) => `Note ${at}: Mia saw ${seen[at % seen.length]}.`,
  ).join(" ");
