import { afterAll, expect, test } from "vitest";
import { endServers, idle, testServer } from "./engine.cases.ts";
import { chatPath, expectError, hello, post, replyTo, textPath } from "./http.cases.ts";

const server = testServer();
const { app, engine } = server;
afterAll(() => endServers(server));

const read = async (path: string) => await (await app.request(path)).json();
const slot = (id: number, is_processing: boolean) => ({ id, n_ctx: 4096, is_processing });

test("props tell the sizes, and how tokens are drawn", async () => {
  expect(await read("/props")).toEqual({
    model_alias: "nano",
    total_slots: 2,
    default_generation_settings: {
      n_ctx: 4096,
      params: { temperature: 0.7, top_k: 20, top_p: 0.95, min_p: 0 },
    },
    modalities: { vision: false, audio: false },
  });
});

test("slots tell how many are taken, and by a status whether all are", async () => {
  expect(await read("/slots")).toEqual([slot(0, false), slot(1, false)]);
  expect((await app.request("/slots?fail_on_no_slot=1")).status).toBe(200);
  const endless = { prompt: "x", max_tokens: 4000, ignore_eos: true, stream: true };
  const one = await post(app, textPath, endless);
  expect(await read("/slots")).toEqual([slot(0, true), slot(1, false)]);
  const other = await post(app, textPath, endless);
  expect(engine.counts.running).toBe(2);
  expect(await read("/slots")).toEqual([slot(0, true), slot(1, true)]);
  const refused = await app.request("/slots?fail_on_no_slot=1");
  expect([refused.status, refused.headers.get("Retry-After")]).toEqual([503, "1"]);
  const error = { message: "All 2 slots are taken.", type: "server_error", param: null };
  expect(await refused.json()).toEqual({ error: { ...error, code: "no_slot" } });
  for (const { body } of [one, other]) await body!.cancel();
  await idle(server);
});

test("a chat's prompt is what the template makes of it", async () => {
  const fields = { messages: hello, chat_template_kwargs: { enable_thinking: false } };
  const { prompt } = (await (await post(app, "/apply-template", fields)).json()) as {
    prompt: string;
  };
  expect(prompt).toBe(
    "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n",
  );
  const short = { max_tokens: 3, seed: 5 };
  const chat = await replyTo(app, chatPath, { ...fields, ...short });
  expect((await replyTo(app, textPath, { prompt, ...short })).token_sha).toBe(chat.token_sha);
});

test("what makes no chat makes no prompt", async () => {
  const missing = { code: "missing_field", param: "messages", words: "messages is missing" };
  await expectError(app, "/apply-template", {}, 400, missing);
  for (const path of ["/props", "/slots"]) {
    const refused = await post(app, path, {});
    expect([refused.status, refused.headers.get("Allow")]).toEqual([405, "GET"]);
  }
});

test("embeddings are refused with the reason", async () => {
  const words = "they make no embeddings";
  const expected = { code: "embeddings_not_supported", param: null, words };
  await expectError(app, "/v1/embeddings", { model: "nano", input: "a" }, 400, expected);
  const refused = await app.request("/v1/embeddings");
  expect([refused.status, refused.headers.get("Allow")]).toEqual([405, "POST"]);
});
