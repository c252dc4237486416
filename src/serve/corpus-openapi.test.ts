/** Every recorded reply and event that OpenAI describes is as described. */
import { expect, test } from "vitest";
import { type CorpusFile, corpusFiles, read } from "./corpus-files.cases.ts";
import { isMessagesPath } from "./messages-error.ts";
import { expectValid, expectValidEvent } from "./openapi.cases.ts";

/** A JSON text that was sent. */
interface Sent {
  readonly method: string;
  readonly path: string;
  readonly status: number;
  /** Whether it is one event of several. */
  readonly isEvent: boolean;
  readonly text: string;
}

/** By their paths, the schema of a whole reply, and that of an event. */
const described: readonly (readonly [path: RegExp, whole: string, event?: string])[] = [
  [
    /^\/v1\/chat\/completions$/,
    "CreateChatCompletionResponse",
    "CreateChatCompletionStreamResponse",
  ],
  [/^\/v1\/completions$/, "CreateCompletionResponse", "CreateCompletionResponse"],
  [/^\/v1\/responses(\/[^/]+)?$/, "Response", "ResponseStreamEvent"],
  [/^\/v1\/responses\/[^/]+\/input_items/, "ResponseItemList"],
  [/^\/v1\/models(\?|$)/, "ListModelsResponse"],
  [/^\/v1\/models\/./, "Model"],
];

/** What describes it; null where nothing of OpenAI's does. */
function schemaOf({ method, path, status, isEvent }: Sent): string | null {
  if (isMessagesPath(path)) return null;
  if (status >= 400) return "ErrorResponse";
  const [, whole, event] = described.find(([pattern]) => pattern.test(path)) ?? [];
  // Of what is deleted nothing is described.
  return (method === "DELETE" ? null : isEvent ? event : whole) ?? null;
}

/** Lines of a request begin with >, those of a reply's head with <, what the model said with !, a log with =. */
function sentIn(exchange: string): Sent[] {
  const [, method = "", path = ""] = /^> (\w+) (\S+)/m.exec(exchange)!;
  const [, code] = /^< (\d{3})$/m.exec(exchange)!;
  const request = { method, path, status: Number(code) };
  const body = exchange.replace(/^([<>!=]|##)( .*)?\n?/gm, "");
  if (body.startsWith("{")) return [{ ...request, isEvent: false, text: body }];
  const events = [...body.matchAll(/^data: (\{.*)$/gm)];
  return events.map(([, text]) => ({ ...request, isEvent: true, text: text! }));
}

/** Of connections, whose bytes are recorded: bodies of several replies may be in one line. */
function sentOver(connection: string): Sent[] {
  const asked = [...connection.matchAll(/^> .*?(\w+) (\S+) HTTP\/\d/gm)];
  const replies = connection.split(/(?=HTTP\/1\.1 [2-5]\d\d )/).slice(1);
  return replies.flatMap((reply, index) => {
    const [, method = "", path = ""] = asked[index] ?? [];
    const request = { method, path, status: Number(reply.slice(9, 12)) };
    const bodies = [...reply.matchAll(/^< (data: )?(\{.*\})$/gm)];
    return bodies.map(([, event, written]) => {
      const text = JSON.parse(`"${written!.replaceAll('"', '\\"')}"`) as string;
      return { ...request, isEvent: event !== undefined, text };
    });
  });
}

const sentOf = async (file: CorpusFile): Promise<Sent[]> =>
  (await read(file)).flatMap(file.name === "framing" ? sentOver : sentIn);

test.each(corpusFiles)("$name", async (file) => {
  for (const sent of await sentOf(file)) {
    const value = JSON.parse(sent.text);
    const schema = schemaOf(sent);
    if (schema === "ResponseStreamEvent") expectValidEvent(value);
    else if (schema !== null) expectValid(schema, value);
  }
});

test("there are some of each kind, and many in all", async () => {
  const all = (await Promise.all(corpusFiles.map(sentOf))).flat();
  const schemas = all.flatMap((sent) => schemaOf(sent) ?? []);
  const kinds = described.flatMap(([, ...names]) => names);
  expect(new Set(schemas)).toEqual(new Set([...kinds, "ErrorResponse"]));
  expect(schemas.length).toBeGreaterThan(800);
});
