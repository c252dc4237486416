import { afterAll, expect, test } from "vitest";
import { tokenSha } from "../sampling/seed.ts";
import { endServers, testServer } from "./engine.cases.ts";
import { chatPath, eventsOf, hello, replyTo, textPath } from "./http.cases.ts";

const random = testServer();
/** Every row prefers the same three tokens: 5 (3), 6 (2.5), 7 (2). */
const steady = testServer({
  logits: (row) => {
    row.fill(0);
    row.set([3, 2.5, 2], 5);
  },
});
afterAll(() => endServers(random, steady));

test.each([
  [{}, [5, 5, 5, 5, 5, 5]],
  [{ frequency_penalty: 1 }, [5, 6, 5, 7, 6, 5]],
  [{ presence_penalty: 0.75 }, [5, 6, 5, 5, 5, 5]],
  [{ presence_penalty: 2 }, [5, 6, 7, 5, 5, 5]],
  [{ repetition_penalty: 1.5 }, [6, 5, 5, 5, 5, 5]],
  [{ repetition_penalty: 1.25, frequency_penalty: 0.5 }, [6, 5, 7, 5, 6, 5]],
  [{ logit_bias: { 7: 1.5, 5: -100 } }, [7, 7, 7, 7, 7, 7]],
])("by hand: %j after token 5", async (fields, ids) => {
  const body = { prompt: [5], max_tokens: ids.length, temperature: 0, ignore_eos: true };
  const reply = await replyTo(steady.app, textPath, { ...body, ...fields });
  expect(reply.token_sha).toBe(tokenSha(ids));
});

test.each([
  { repetition_penalty: 1.3 },
  { repetition_penalty: 0.5 },
  { presence_penalty: 2 },
  { frequency_penalty: -2 },
  { logit_bias: { 42: 5 } },
])("%j changes a sampled reply, the same way each time and streamed", async (fields) => {
  const body = { messages: hello, max_tokens: 200, ignore_eos: true, seed: 3, top_k: 0 };
  const plain = await replyTo(random.app, chatPath, body);
  const adjusted = { ...body, ...fields };
  const [whole, events] = await Promise.all([
    replyTo(random.app, chatPath, adjusted),
    eventsOf(random.app, chatPath, adjusted),
  ]);
  expect(whole.token_sha).not.toBe(plain.token_sha);
  expect(events.at(-1)!.token_sha).toBe(whole.token_sha);
  expect((await replyTo(random.app, chatPath, body)).token_sha).toBe(plain.token_sha);
});
