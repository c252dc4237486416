/** The official client over a server that is called without a socket. */
import OpenAI, { APIError, BadRequestError, NotFoundError } from "openai";
import { afterAll, expect, test } from "vitest";
import { BackendError } from "../errors.ts";
import { endServers, idle, Script, type TestServer, testServer } from "./engine.cases.ts";
import { weatherCall } from "./http.cases.ts";

const model = "nano";
const script = new Script();
const server = testServer({ logits: script.logits });
const { responses } = clientOf(server);
afterAll(() => endServers(server));

function clientOf({ app }: TestServer): OpenAI {
  return new OpenAI({
    baseURL: "http://localhost/v1",
    apiKey: "none",
    maxRetries: 0,
    fetch: async (url, init) => await app.request(String(url), init),
  });
}

const tools: OpenAI.Responses.FunctionTool[] = [
  {
    type: "function",
    name: "get_weather",
    description: "The weather of a city",
    parameters: { type: "object", properties: { city: { type: "string" } } },
    strict: null,
  },
];

test("create, retrieve, list what it answered, and delete", async () => {
  script.say("Hmm.\n</think>\n\nGood day \u{1F980}");
  const response = await responses.create({ model, input: "Hello", metadata: { a: "b" } });
  expect(response.output_text).toBe("Good day \u{1F980}");
  expect(response.status).toBe("completed");
  const stored = await responses.retrieve(response.id);
  expect(stored).toEqual(response);
  const { data } = await responses.inputItems.list(response.id);
  expect(data).toMatchObject([{ role: "user", content: [{ type: "input_text", text: "Hello" }] }]);
  await responses.delete(response.id);
  await expect(responses.retrieve(response.id)).rejects.toBeInstanceOf(NotFoundError);
});

test("a stream of reasoning, text and calls", async () => {
  script.say(`Hmm.\n</think>\n\nLet me look.\n${weatherCall("Paris")}\n${weatherCall("Oslo")}`);
  const stream = responses.stream({ model, input: "Hello", tools });
  const texts: string[] = [];
  const snapshots: string[] = [];
  const written: string[] = [];
  stream.on("response.output_text.delta", ({ delta, snapshot }) => {
    texts.push(delta);
    snapshots.push(snapshot);
  });
  stream.on("response.function_call_arguments.done", (event) => written.push(event.arguments));
  const final = await stream.finalResponse();
  expect(texts.join("")).toBe("Let me look.");
  expect(snapshots.at(-1)).toBe("Let me look.");
  expect(written).toEqual(['{"city":"Paris"}', '{"city":"Oslo"}']);
  expect(final.output.map(({ type }) => type)).toEqual([
    "reasoning",
    "message",
    "function_call",
    "function_call",
  ]);
  expect(final.output_text).toBe("Let me look.");
  expect(await responses.retrieve(final.id)).toMatchObject({ id: final.id, status: "completed" });
});

test("tools: a call, its result, and a second turn by the response's id", async () => {
  script.say(`</think>\n\n${weatherCall("Paris")}`);
  const first = await responses.create({ model, input: "Weather?", tools });
  const [call] = first.output as [OpenAI.Responses.ResponseFunctionToolCall];
  expect(JSON.parse(call.arguments)).toEqual({ city: "Paris" });
  script.say("</think>\n\nIt rains.");
  const second = await responses.create({
    model,
    previous_response_id: first.id,
    input: [{ type: "function_call_output", call_id: call.call_id, output: "rain" }],
    tools,
  });
  expect(second).toMatchObject({ output_text: "It rains.", previous_response_id: first.id });
  script.say("</think>\n\nWelcome.");
  const third = await responses.create({ model, previous_response_id: second.id, input: "Thanks" });
  expect(third.output_text).toBe("Welcome.");
  expect(third.usage!.input_tokens_details.cached_tokens).toBeGreaterThan(0);
});

test("a response's output goes back as input, as the client has it", async () => {
  script.say(`Hmm.\n</think>\n\nWait.\n${weatherCall("Paris")}`);
  const input: OpenAI.Responses.ResponseInput = [{ role: "user", content: "Weather?" }];
  const first = await responses.create({ model, input, tools, store: false });
  const call = first.output.find((item) => item.type === "function_call")!;
  input.push(...(first.output as OpenAI.Responses.ResponseInput));
  input.push({ type: "function_call_output", call_id: call.call_id, output: "rain" });
  script.say("</think>\n\nIt rains.");
  const second = await responses.create({ model, input, tools, store: false });
  expect(second.output_text).toBe("It rains.");
});

test("a stream that is cut short ends incomplete", async () => {
  script.say("one two three four five six");
  const stream = responses.stream({ model, input: "Count", max_output_tokens: 3 });
  const final = await stream.finalResponse();
  expect(final).toMatchObject({
    status: "incomplete",
    incomplete_details: { reason: "max_output_tokens" },
  });
});

test("errors are the client's own exceptions", async () => {
  const hosted = responses.create({ model, input: "x", tools: [{ type: "web_search" }] });
  const error = await hosted.catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(BadRequestError);
  expect(error).toMatchObject({ code: "unsupported_parameter", param: "tools[0].type" });
  const unknown = responses.create({ model, input: "x", previous_response_id: "resp_x" });
  await expect(unknown).rejects.toMatchObject({ code: "previous_response_not_found" });
});

test("a failure inside a stream is thrown to who iterates, and to who waits", async () => {
  let passes = 0;
  const fault = () => {
    passes++;
    if (passes % 6 === 0) throw new BackendError("it broke");
  };
  const faulty = testServer({ fault });
  const client = clientOf(faulty);
  const body = { model, input: "x", ignore_eos: true } as const;
  const iterated = async () => {
    for await (const _ of await client.responses.create({ ...body, stream: true }));
  };
  const waited = async () => await client.responses.stream(body).finalResponse();
  for (const read of [iterated, waited]) {
    const error = await read().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(APIError);
    expect(error).toMatchObject({ code: "backend_error" });
    expect(String(error)).toContain("it broke");
    await idle(faulty);
  }
  await faulty.engine[Symbol.asyncDispose]();
});

test("leaving a stream frees the slot", async () => {
  script.say(Array<number>(900).fill(50));
  const stream = await responses.create({ model, input: "x", stream: true });
  for await (const { type } of stream) if (type === "response.reasoning_text.delta") break;
  await idle(server);
});
