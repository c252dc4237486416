import { expect, test } from "vitest";
import { nextTask } from "../clock.ts";
import { BackendError } from "../errors.ts";
import { pageRows } from "../limits.ts";
import { sameTokenDrafting, sameTokenLogits } from "../rounds/same-token.cases.ts";
import { cacheBytes, idle, type TestOptions, testServer } from "./engine.cases.ts";
import { chatPath, hello, post, replyTo, textPath } from "./http.cases.ts";
import { metricsOf, readSamples, type Samples } from "./metrics.cases.ts";

/** Every reply says one token for ever, and a pass takes 50 ms. */
function measuredServer(options: TestOptions = {}) {
  let nowMs = 0;
  const clock = { nowMs: () => nowMs, unixSeconds: () => 0 };
  const onPass = () => {
    nowMs += 50;
  };
  const { parts, app, ...others } = options;
  const server = testServer({
    ...{ onPass, logits: sameTokenLogits, ...others },
    ...{ parts: { clock, ...parts }, app: { clock, ...app } },
  });
  return { ...server, clock };
}

/** The samples that begin so, under what follows in their names. */
const under = (samples: Samples, prefix: string): Record<string, number> =>
  Object.fromEntries(
    [...samples]
      .filter(([name]) => name.startsWith(prefix))
      .map(([name, value]) => [name.slice(prefix.length), value]),
  );

// Not cached, a prompt is one pass.
const text = { prompt: [1, 2, 3, 4], max_tokens: 5, ignore_eos: true, cache_prompt: false };
const vllm = '{model_name="nano"}';

test("a server that has served nobody", async () => {
  const { app } = measuredServer({ slots: 2, contextTokens: 4096 });
  const response = await app.request("/v1/metrics");
  expect(response.headers.get("Content-Type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  const samples = readSamples(await response.text());
  const plain = [...samples].filter(([name]) => !name.includes("_seconds"));
  expect(Object.fromEntries(plain)).toEqual({
    deltafold_requests_running: 0,
    deltafold_requests_waiting: 0,
    deltafold_slots: 2,
    deltafold_prompt_tokens_total: 0,
    deltafold_prompt_tokens_cached_total: 0,
    deltafold_generation_tokens_total: 0,
    deltafold_decode_rounds_total: 0,
    deltafold_draft_tokens_total: 0,
    deltafold_draft_accepted_tokens_total: 0,
    deltafold_preemptions_total: 0,
    deltafold_kv_cache_usage_ratio: 0,
    deltafold_prompt_cache_bytes: 0,
    deltafold_prompt_cache_entries: 0,
    deltafold_client_disconnections_total: 0,
    'deltafold_backend_memory_bytes{part="weights"}': 0,
    'deltafold_backend_memory_bytes{part="state"}': 8,
    'deltafold_backend_memory_bytes{part="kv"}': 4 * 128 * pageRows,
    'deltafold_backend_memory_bytes{part="workspace"}': 0,
    [`vllm:num_requests_running${vllm}`]: 0,
    [`vllm:num_requests_waiting${vllm}`]: 0,
    [`vllm:kv_cache_usage_perc${vllm}`]: 0,
    'vllm:cache_config_info{model_name="nano",block_size="64",num_gpu_blocks="128"}': 1,
    [`vllm:prompt_tokens_total${vllm}`]: 0,
    [`vllm:generation_tokens_total${vllm}`]: 0,
    [`vllm:num_preemptions_total${vllm}`]: 0,
    [`vllm:prefix_cache_queries_total${vllm}`]: 0,
    [`vllm:prefix_cache_hits_total${vllm}`]: 0,
    [`vllm:spec_decode_num_draft_tokens_total${vllm}`]: 0,
    [`vllm:spec_decode_num_accepted_tokens_total${vllm}`]: 0,
  });
  expect([...samples].filter(([name, value]) => name.includes("_seconds") && value !== 0)).toEqual(
    [],
  );
});

test("requests count by what their URLs are instances of, and their status", async () => {
  const { app } = measuredServer();
  await replyTo(app, textPath, text);
  await (await post(app, textPath, { ...text, stream: true })).text();
  await post(app, textPath, "{");
  await app.request("/v1/models");
  await app.request("/v1/models/nano");
  await app.request("/v1/models/other");
  await app.request("/v1/models/third", { method: "PUT" });
  await app.request("/health", { method: "HEAD" });
  for (const path of ["/", "/a", "/b/c", "/v1/completions/x"]) await app.request(path);
  await nextTask();
  expect(under(await metricsOf(app), "deltafold_requests_total")).toEqual({
    '{route="/v1/completions",status="200"}': 2,
    '{route="/v1/completions",status="400"}': 1,
    '{route="/v1/models",status="200"}': 1,
    '{route="/v1/models/:id",status="200"}': 1,
    '{route="/v1/models/:id",status="404"}': 1,
    '{route="/v1/models/:id",status="405"}': 1,
    '{route="/health",status="200"}': 1,
    '{route="other",status="404"}': 4,
  });
  // The one that was just answered has ended since.
  await nextTask();
  expect(under(await metricsOf(app), "deltafold_requests_total")).toMatchObject({
    '{route="/metrics",status="200"}': 1,
  });
});

test("tokens, rounds and seconds of plain replies", async () => {
  const { app } = measuredServer();
  await replyTo(app, textPath, text);
  await replyTo(app, textPath, { ...text, max_tokens: 1 });
  await nextTask();
  const samples = await metricsOf(app);
  const figure = (name: string) => samples.get(`deltafold_${name}`);
  expect(figure("prompt_tokens_total")).toBe(8);
  expect(figure("generation_tokens_total")).toBe(6);
  expect(figure("decode_rounds_total")).toBe(4);
  expect(under(samples, "deltafold_replies_total")).toEqual({ '{finish_reason="length"}': 2 });
  const histogram = (name: string) => [
    figure(`${name}_seconds_count`),
    figure(`${name}_seconds_sum`),
    figure(`${name}_seconds_bucket{le="0.05"}`),
    figure(`${name}_seconds_bucket{le="0.1"}`),
    figure(`${name}_seconds_bucket{le="0.25"}`),
    figure(`${name}_seconds_bucket{le="+Inf"}`),
  ];
  expect(histogram("time_to_first_token")).toEqual([2, 0.1, 2, 2, 2, 2]);
  expect(histogram("request_queue")).toEqual([2, 0, 2, 2, 2, 2]);
  expect(histogram("request_prefill")).toEqual([2, 0.1, 2, 2, 2, 2]);
  expect(histogram("request_decode")).toEqual([2, 0.2, 1, 1, 2, 2]);
  expect(histogram("request_latency")).toEqual([2, 0.3, 1, 1, 2, 2]);
  expect(histogram("time_per_output_token")).toEqual([1, 0.05, 1, 1, 1, 1]);
  const pairs = {
    e2e_request_latency: "request_latency",
    request_queue_time: "request_queue",
    time_to_first_token: "time_to_first_token",
    request_prefill_time: "request_prefill",
    request_decode_time: "request_decode",
    request_time_per_output_token: "time_per_output_token",
  };
  for (const [theirs, ours] of Object.entries(pairs)) {
    const of = samples.get(`vllm:${theirs}_seconds_bucket{model_name="nano",le="0.25"}`);
    expect(of).toBe(figure(`${ours}_seconds_bucket{le="0.25"}`));
    expect(samples.get(`vllm:${theirs}_seconds_sum${vllm}`)).toBe(figure(`${ours}_seconds_sum`));
  }
});

test("who waits for a slot has that in his time to the first token", async () => {
  const { app } = measuredServer({ slots: 1 });
  await Promise.all([replyTo(app, textPath, text), replyTo(app, textPath, text)]);
  await nextTask();
  const samples = await metricsOf(app);
  const sum = (name: string) => samples.get(`deltafold_${name}_seconds_sum`);
  expect(sum("request_queue")).toBe(0.25);
  expect(sum("time_to_first_token")).toBe(0.35);
  expect(sum("request_prefill")).toBeCloseTo(0.1, 9);
});

test("drafts, those proposed and those that landed", async () => {
  const { app } = measuredServer({ parts: { drafting: () => sameTokenDrafting } });
  await replyTo(app, textPath, { ...text, max_tokens: 10 });
  await replyTo(app, textPath, { ...text, max_tokens: 10, draft: false });
  const samples = await metricsOf(app);
  // Three rounds of three tokens, the last with room for two drafts; then nine plain ones.
  expect(samples.get("deltafold_decode_rounds_total")).toBe(12);
  expect(samples.get("deltafold_generation_tokens_total")).toBe(20);
  expect(samples.get("deltafold_draft_tokens_total")).toBe(8);
  expect(samples.get("deltafold_draft_accepted_tokens_total")).toBe(6);
  expect(samples.get(`vllm:spec_decode_num_draft_tokens_total${vllm}`)).toBe(8);
  expect(samples.get(`vllm:spec_decode_num_accepted_tokens_total${vllm}`)).toBe(6);
});

test("the prompt cache, and what it spared", async () => {
  const server = measuredServer();
  const { app, engine } = server;
  const ask = async (more: object = {}) => {
    const reply = await replyTo(app, chatPath, { messages: hello, max_tokens: 2, ...more });
    await engine.settled();
    return reply.usage!;
  };
  const { prompt_tokens: tokens } = await ask();
  const { prompt_tokens_details: again } = await ask();
  await ask({ cache_prompt: false });
  expect(again.cached_tokens).toBe(tokens - 1);
  const samples = await metricsOf(app);
  expect(samples.get("deltafold_prompt_tokens_total")).toBe(3 * tokens);
  expect(samples.get("deltafold_prompt_tokens_cached_total")).toBe(tokens - 1);
  expect(samples.get(`vllm:prefix_cache_queries_total${vllm}`)).toBe(2 * tokens);
  expect(samples.get(`vllm:prefix_cache_hits_total${vllm}`)).toBe(tokens - 1);
  const { entries, bytes } = engine.cached;
  expect(entries).toBeGreaterThan(0);
  expect(bytes).toBeLessThan(cacheBytes);
  expect(samples.get("deltafold_prompt_cache_entries")).toBe(entries);
  expect(samples.get("deltafold_prompt_cache_bytes")).toBe(bytes);
  // What is cached is free for whoever comes.
  expect(samples.get("deltafold_kv_cache_usage_ratio")).toBe(0);
  await idle(server);
});

test("those that run hold pages, those that wait don't", async () => {
  const server = measuredServer({ slots: 1, contextTokens: 640 });
  const { app, engine } = server;
  const hangUp = new AbortController();
  const { signal } = hangUp;
  const endless = { ...text, max_tokens: 600 };
  const asked = [0, 1, 2].map(() => post(app, textPath, endless, { signal }));
  while (engine.totals.replyTokens < 100) await nextTask();
  const { held } = engine.pages;
  const samples = await metricsOf(app);
  expect(samples.get("deltafold_requests_running")).toBe(1);
  expect(samples.get("deltafold_requests_waiting")).toBe(2);
  expect(samples.get(`vllm:num_requests_running${vllm}`)).toBe(1);
  expect(samples.get(`vllm:num_requests_waiting${vllm}`)).toBe(2);
  // 104 tokens at least, of ten pages.
  expect(held).toBeGreaterThanOrEqual(2);
  expect(samples.get("deltafold_kv_cache_usage_ratio")).toBe(held / 10);
  expect(samples.get(`vllm:kv_cache_usage_perc${vllm}`)).toBe(held / 10);
  hangUp.abort();
  await Promise.all(asked);
  await idle(server);
  const after = await metricsOf(app);
  expect(after.get("deltafold_kv_cache_usage_ratio")).toBe(0);
  expect(after.get("deltafold_client_disconnections_total")).toBe(3);
  expect(under(after, "deltafold_replies_total")).toEqual({ '{finish_reason="cancelled"}': 3 });
  expect(under(after, "deltafold_requests_total")).toMatchObject({
    '{route="/v1/completions",status="499"}': 3,
  });
  // Of a reply that was broken off nobody knows how long it would have taken.
  expect(after.get("deltafold_request_latency_seconds_count")).toBe(0);
  expect(after.get("deltafold_time_to_first_token_seconds_count")).toBe(0);
});

test("replies that failed, and streams that yielded", async () => {
  const fault = (pass: number) => {
    if (pass === 2) throw new BackendError("it broke");
  };
  const server = measuredServer({ slots: 1, fault });
  const { app, engine } = server;
  expect((await post(app, textPath, text)).status).toBe(500);
  const background = replyTo(app, textPath, { ...text, max_tokens: 50, priority: "background" });
  while (engine.totals.replyTokens < 10) await nextTask();
  await replyTo(app, textPath, text);
  await background;
  await nextTask();
  const samples = await metricsOf(app);
  const reasons = { '{finish_reason="error"}': 1, '{finish_reason="length"}': 2 };
  expect(under(samples, "deltafold_replies_total")).toEqual(reasons);
  expect(samples.get("deltafold_preemptions_total")).toBe(1);
  expect(samples.get(`vllm:num_preemptions_total${vllm}`)).toBe(1);
  expect(samples.get("deltafold_request_latency_seconds_count")).toBe(2);
  // The first token of the reply that failed was a token.
  expect(samples.get("deltafold_generation_tokens_total")).toBe(56);
});

test("what nobody knows is absent", async () => {
  const known = measuredServer({ app: { residentBytes: () => 12_345 } });
  const name = "deltafold_process_resident_bytes";
  expect((await metricsOf(known.app)).get(name)).toBe(12_345);
  expect((await metricsOf(measuredServer().app)).has(name)).toBe(false);
});

test("a model's name can't write lines", async () => {
  const model = 'a"\\\n} 1';
  const { app } = measuredServer({ parts: { model } });
  const samples = await metricsOf(app);
  expect(samples.get('vllm:num_requests_running{model_name="a\\"\\\\\\n} 1"}')).toBe(0);
});

test("only GET reads them", async () => {
  const { app } = measuredServer();
  const refused = await app.request("/metrics", { method: "POST" });
  expect([refused.status, refused.headers.get("Allow")]).toEqual([405, "GET"]);
});

test("the page's files have one label, whatever they are called", async () => {
  const bytes = new TextEncoder().encode("x");
  const file = { type: "text/plain", bytes };
  const page = new Map(["/", "/assets/a-1.js", "/assets/b-2.css"].map((path) => [path, file]));
  const { app } = testServer({ app: { page } });
  for (const path of page.keys()) expect((await app.request(path)).status).toBe(200);
  const text = await (await app.request("/metrics")).text();
  expect(text).toContain('deltafold_requests_total{route="/assets/*",status="200"} 2\n');
  expect(text).toContain('deltafold_requests_total{route="/",status="200"} 1\n');
});
