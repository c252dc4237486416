import { afterAll, expect, test } from "vitest";
import { endServers, Script, testServer } from "./engine.cases.ts";
import { weatherCall } from "./http.cases.ts";
import { ApiKeys } from "./keys.ts";
import { noThinking, respond, responsesPath, weather } from "./responses.cases.ts";

const script = new Script();
const server = testServer({ logits: script.logits });
const { app } = server;
afterAll(() => endServers(server));

async function get(path: string, method = "GET"): Promise<{ status: number; body: unknown }> {
  const reply = await app.request(`${responsesPath}/${path}`, { method });
  return { status: reply.status, body: await reply.json() };
}

async function say(text: string, fields: object = {}) {
  script.say(text);
  return await respond(app, { input: "Hello", ...noThinking, ...fields });
}

const notFound = (id: string) => ({
  status: 404,
  body: {
    error: {
      message: `No response "${id}" is stored here.`,
      type: "invalid_request_error",
      param: "response_id",
      code: "response_not_found",
    },
  },
});

test("a response is stored as it was sent, until it is deleted", async () => {
  const response = await say("Good day");
  const { id } = response;
  expect(await get(id)).toEqual({ status: 200, body: response });
  expect(await get(id, "DELETE")).toEqual({
    status: 200,
    body: { id, object: "response.deleted", deleted: true },
  });
  for (const method of ["GET", "DELETE"]) expect(await get(id, method)).toEqual(notFound(id));
  expect(await get(`${id}/input_items`)).toEqual(notFound(id));
});

test("nothing is stored where store is false", async () => {
  const { id, store } = await say("Good day", { store: false });
  expect(store).toBe(false);
  expect(await get(id)).toEqual(notFound(id));
});

test("what isn't there", async () => {
  expect(await get("resp_x")).toEqual(notFound("resp_x"));
  const { id } = await say("Good day");
  const streamed = await get(`${id}?stream=true`);
  expect(streamed).toMatchObject({
    status: 400,
    body: { error: { code: "unsupported_parameter", param: "stream" } },
  });
  expect(await get(`${id}/cancel`, "POST")).toMatchObject({ status: 404 });
  for (const [path, method, allow] of [
    [id, "POST", "GET, DELETE"],
    [`${id}/input_items`, "DELETE", "GET"],
  ] as const) {
    const reply = await app.request(`${responsesPath}/${path}`, { method });
    expect([reply.status, reply.headers.get("Allow")]).toEqual([405, allow]);
  }
  const reply = await app.request(responsesPath);
  expect([reply.status, reply.headers.get("Allow")]).toEqual([405, "POST"]);
});

test("the items that a response answered, in pages", async () => {
  const first = await say(`Wait.\n${weatherCall("Paris")}`, { tools: [weather] });
  const { call_id } = first.output[1] as { call_id: string };
  const output = { type: "function_call_output", call_id, output: "Rain." };
  const { id } = await say("It rains.", { previous_response_id: first.id, input: [output] });
  const all = [
    {
      type: "message",
      id: expect.stringMatching(/^msg_/),
      status: "completed",
      role: "user",
      content: [{ type: "input_text", text: "Hello" }],
    },
    ...first.output,
    { ...output, id: expect.stringMatching(/^fco_/), status: "completed" },
  ];
  const list = async (query: string) => (await get(`${id}/input_items${query}`)).body;
  const { data } = (await list("?order=asc")) as { data: { id: string }[] };
  const ids = data.map((item) => item.id);
  const page = (from: number, to: number, has_more: boolean) => ({
    object: "list",
    data: data.slice(from, to),
    first_id: ids[from] ?? "",
    last_id: ids[to - 1] ?? "",
    has_more,
  });
  expect(data).toEqual(all);
  expect(await list("?order=asc")).toEqual(page(0, 4, false));
  expect(await list("?order=asc&limit=3")).toEqual(page(0, 3, true));
  expect(await list(`?order=asc&limit=2&after=${ids[0]}`)).toEqual(page(1, 3, true));
  expect(await list(`?order=asc&after=${ids[3]}`)).toEqual({
    ...page(4, 4, false),
    first_id: "",
    last_id: "",
  });
  for (const query of ["", "?order=desc"]) {
    expect(await list(query)).toEqual({
      object: "list",
      data: data.toReversed(),
      first_id: ids[3],
      last_id: ids[0],
      has_more: false,
    });
  }
  for (const [query, param] of [
    ["limit=0", "limit"],
    ["limit=101", "limit"],
    ["limit=x", "limit"],
    ["order=up", "order"],
    ["after=x", "after"],
  ] as const) {
    expect(await get(`${id}/input_items?${query}`)).toMatchObject({
      status: 400,
      body: { error: { param } },
    });
  }
});

test("another key's responses aren't there, whatever the keys are called", async () => {
  const [ann, ben, other] = ["sk-ann", "sk-ben", "sk-other"];
  const keys = new ApiKeys([
    { label: "team", key: ann },
    { label: "team", key: ben },
    { label: "other", key: other },
  ]);
  const logged: unknown[] = [];
  const onEnd = (entry: unknown) => logged.push(entry);
  const server = testServer({ logits: script.logits, app: { keys, onEnd } });
  const ask = async (key: string, path: string, method: string, body?: object) => {
    const headers = { Authorization: `Bearer ${key}`, "Content-Type": "application/json" };
    const init = { method, headers, ...(body && { body: JSON.stringify(body) }) };
    const reply = await server.app.request(responsesPath + path, init);
    return { status: reply.status, body: (await reply.json()) as { id: string } };
  };
  script.say("Good day");
  const made = await ask(ann, "", "POST", { input: "Hello", ...noThinking });
  const { id } = made.body;
  const goOn = { input: "More", previous_response_id: id, ...noThinking };
  for (const key of [ben, other]) {
    expect(await ask(key, `/${id}`, "GET")).toEqual(notFound(id));
    expect(await ask(key, `/${id}`, "DELETE")).toEqual(notFound(id));
    expect(await ask(key, `/${id}/input_items`, "GET")).toEqual(notFound(id));
    const unknown = await ask(key, "", "POST", { ...goOn, previous_response_id: "resp_x" });
    const refused = await ask(key, "", "POST", goOn);
    expect(refused.status).toBe(404);
    expect(JSON.stringify(refused)).toBe(JSON.stringify(unknown).replace("resp_x", id));
  }
  expect(await ask(ann, `/${id}`, "GET")).toEqual(made);
  expect((await ask(ann, `/${id}/input_items`, "GET")).status).toBe(200);
  script.say("More");
  expect((await ask(ann, "", "POST", goOn)).status).toBe(200);
  expect((await ask(ann, `/${id}`, "DELETE")).status).toBe(200);
  for (const key of [ann, ben]) {
    expect(JSON.stringify(logged)).not.toContain(keys.find(key)!.digest);
  }
  await server.engine[Symbol.asyncDispose]();
});
