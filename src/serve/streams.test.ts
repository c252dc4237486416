/** Many streams at once, over HTTP. */
import { expect, test } from "vitest";
import { nextTask } from "../clock.ts";
import { endServers, idle, testServer } from "./engine.cases.ts";
import { chatPath, eventsOf, hello, post, replyTo, textPath } from "./http.cases.ts";

const until = async (condition: () => boolean) => {
  while (!condition()) await nextTask();
};

/** Eight requests of unequal lengths: chats and texts, greedy and seeded, some with a common start. */
const requests = Array.from({ length: 8 }, (_, index): [path: string, body: object] => {
  const sampling = index % 3 === 0 ? { temperature: 0 } : { seed: index, temperature: 1, top_k: 0 };
  const body = { ...sampling, max_tokens: 4 + 3 * index, ignore_eos: true };
  if (index % 2 === 0) return [textPath, { ...body, prompt: Array(60 + 4 * index).fill(5) }];
  const content = `Question ${index}: ${"why ".repeat(index)}`;
  const system = { role: "system", content: "Answer in a word, and think of nothing else at all." };
  return [chatPath, { ...body, messages: [system, { role: "user", content }] }];
});

test("eight streams at once say what each says alone, whatever is cached", async () => {
  let most = 0;
  const computed = async () => {
    most = Math.max(most, engine.counts.running);
    await nextTask();
  };
  const server = testServer({ slots: 8, computed });
  const { app, engine } = server;
  const alone: (string | undefined)[] = [];
  for (const [path, body] of requests) {
    const reply = await replyTo(app, path, { ...body, cache_prompt: false });
    expect(reply.timings!.cache_miss_reason).toBe("off");
    alone.push(reply.token_sha);
  }
  expect(engine.cached.entries).toBe(0);
  expect(most).toBe(1);
  for (const cached of [false, true]) {
    const replies = requests.map(async ([path, body], index) => {
      if (index % 4 < 2) return await replyTo(app, path, body);
      const stream_options = { include_usage: true };
      const events = await eventsOf(app, path, { ...body, stream_options });
      return { ...events.at(-2)!, usage: events.at(-1)!.usage! };
    });
    for (const [index, { token_sha, usage, timings }] of (await Promise.all(replies)).entries()) {
      expect(token_sha).toBe(alone[index]);
      // A text that is asked for again goes on from no mark: its reply alone was kept.
      if (!cached || requests[index]![0] === textPath) continue;
      expect(timings).not.toHaveProperty("cache_miss_reason");
      const { prompt_tokens, prompt_tokens_details: details } = usage!;
      // Next turns part from this prompt at its last token, the newline behind <think>.
      expect(details).toEqual({ cached_tokens: prompt_tokens - 1 });
    }
    await idle(server);
  }
  expect(most).toBe(8);
  await endServers(server);
});

test("a second turn costs its new tokens, and says what was cached", async () => {
  const server = testServer();
  const body = {
    max_tokens: 5,
    ignore_eos: true,
    chat_template_kwargs: { enable_thinking: false },
  };
  const first = await replyTo(server.app, chatPath, { ...body, messages: hello });
  expect(first.timings!.cache_miss_reason).toBe("no_match");
  const { content } = first.choices[0]!.message!;
  await idle(server);
  const next = { role: "user", content: "And now?" };
  const messages = [...hello, { role: "assistant", content }, next];
  const second = await replyTo(server.app, chatPath, { ...body, messages });
  const { prompt_tokens, prompt_tokens_details: details } = second.usage!;
  // The background pass went as far as every next turn goes: up to the user's text.
  const tail = server.engine.tokenize(
    "And now?<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n",
  );
  expect(details.cached_tokens).toBe(prompt_tokens - tail.length);
  expect(second.timings).not.toHaveProperty("cache_miss_reason");
  const health = await (await server.app.request("/health")).json();
  const { entries, bytes } = server.engine.cached;
  expect(health.prompt_cache).toMatchObject({ entries, bytes });
  expect(entries).toBeGreaterThan(0);
  await idle(server);
  await endServers(server);
});

test("a full queue of two is answered with 429 and when to come again", async () => {
  let seconds = 0;
  const clock = { nowMs: () => seconds * 1000, unixSeconds: () => 0 };
  // Two chunks of a prompt, and three rounds behind the first token.
  const onPass = () => {
    seconds += 1;
  };
  const server = testServer({ slots: 1, onPass, parts: { queueMax: 2, clock } });
  const { app, engine } = server;
  const endless = { prompt: "x", max_tokens: 4000, ignore_eos: true };
  const refusedAfter = async () => {
    const hangUp = new AbortController();
    const sent = Array.from({ length: 3 }, () =>
      post(app, textPath, endless, { signal: hangUp.signal }),
    );
    await until(() => engine.counts.running === 1 && engine.counts.waiting === 2);
    const refused = await post(app, textPath, { ...endless, stream: true });
    expect(refused.status).toBe(429);
    expect(await refused.json()).toEqual({
      error: {
        message: "2 requests are already waiting. Try again later.",
        type: "rate_limit_error",
        param: null,
        code: "queue_full",
      },
    });
    hangUp.abort();
    await Promise.all(sent);
    await idle(server);
    return refused.headers.get("Retry-After");
  };
  // Nobody knows yet how long a request takes.
  expect(await refusedAfter()).toBe("1");
  for (let reply = 0; reply < 16; reply++) {
    await replyTo(app, textPath, { prompt: String(reply), max_tokens: 4, ignore_eos: true });
    // Idle time counts for nothing.
    seconds += 1000;
  }
  expect(await refusedAfter()).toBe("5");
  await endServers(server);
});

test("a background request yields its slot, and says the same in the end", async () => {
  const server = testServer({ slots: 1 });
  const { app, engine } = server;
  const long = { prompt: "Once", max_tokens: 60, seed: 1, ignore_eos: true };
  const short = { prompt: "Now", max_tokens: 3, seed: 2, ignore_eos: true };
  const alone = [await replyTo(app, textPath, long), await replyTo(app, textPath, short)];
  const ends: string[] = [];
  const send = async (name: string, body: object) => {
    const reply = await replyTo(app, textPath, body);
    ends.push(name);
    return reply.token_sha;
  };
  const background = send("background", { ...long, priority: "background" });
  await until(() => engine.counts.running === 1);
  const foreground = [0, 1].map(() => send("foreground", short));
  expect(await Promise.all([background, ...foreground])).toEqual([
    alone[0]!.token_sha,
    alone[1]!.token_sha,
    alone[1]!.token_sha,
  ]);
  expect(ends).toEqual(["foreground", "foreground", "background"]);
  await idle(server);
  await endServers(server);
});
