import type { Hono } from "hono";
import type { Engine } from "../engine.ts";
import { pageRows } from "../limits.ts";
import {
  exposition,
  expositionType,
  type Family,
  type Histogram,
  type Sample,
} from "./exposition.ts";
import type { ServedCounts } from "./served-counts.ts";
import { refuseOthers, type Serving } from "./serving.ts";

/** /metrics and /v1/metrics. */
export function addMetrics(app: Hono, { engine, counts, residentBytes }: Serving): void {
  for (const path of ["/metrics", "/v1/metrics"]) {
    app.get(path, (context) => {
      const text = exposition([
        ...engineFamilies(engine),
        ...servedFamilies(counts),
        ...processFamilies(residentBytes?.() ?? null),
        ...pickerFamilies(engine, counts),
      ]);
      return context.body(text, 200, { "Content-Type": expositionType });
    });
    refuseOthers(app, path, "GET");
  }
}

function engineFamilies(engine: Engine): Family[] {
  const { counts, totals, pages, cached, info } = engine;
  const { slots, memory } = info.backend;
  const { weightBytes, stateBytes, kvBytes, workspaceBytes } = memory;
  const parts = { weights: weightBytes, state: stateBytes, kv: kvBytes, workspace: workspaceBytes };
  const memories = Object.entries(parts).map(([part, value]) => ({ labels: { part }, value }));
  return [
    gauge("requests_running", "Requests that have a slot.", counts.running),
    gauge("requests_waiting", "Requests that wait for a slot.", counts.waiting),
    gauge("slots", "Requests that may run at once.", slots),
    counter("prompt_tokens", "Tokens of prompts, computed or cached.", totals.promptTokens),
    counter("prompt_tokens_cached", "Prompt tokens that were cached.", totals.cachedTokens),
    counter("generation_tokens", "Tokens of replies.", totals.replyTokens),
    counter("decode_rounds", "Passes in which requests decoded.", totals.decodeRounds),
    counter("draft_tokens", "Tokens that drafts proposed.", totals.draftedTokens),
    counter("draft_accepted_tokens", "Of these, those that replies have.", totals.acceptedTokens),
    counter("preemptions", "Requests that gave their slot to others.", totals.parks),
    gauge("kv_cache_usage_ratio", "KV pages that requests hold, of all.", usage(pages)),
    gauge("prompt_cache_bytes", "Memory of cached prompts.", cached.bytes),
    gauge("prompt_cache_entries", "Cached prompts.", cached.entries),
    own("backend_memory_bytes", "gauge", "Memory of the backend.", memories),
  ];
}

function servedFamilies(counts: ServedCounts): Family[] {
  const { requests, replies, hangUps } = counts;
  return [
    own("requests_total", "counter", "Requests that have ended.", requests.samples),
    own("replies_total", "counter", "Replies that have ended.", replies.samples),
    counter("client_disconnections", "Clients that went before their reply's end.", hangUps),
    seconds("request_latency", "From a request to its reply's end.", counts.latency),
    seconds("request_queue", "From a request to its slot.", counts.queue),
    seconds("time_to_first_token", "From a request to its first token.", counts.firstToken),
    seconds("request_prefill", "From a slot to the first token.", counts.prefill),
    seconds("request_decode", "From the first token to the last.", counts.decode),
    seconds("time_per_output_token", "From one token to the next.", counts.outputToken),
  ];
}

const processFamilies = (bytes: number | null): Family[] =>
  bytes === null ? [] : [gauge("process_resident_bytes", "Memory of the process.", bytes)];

/** The same under vLLM's names, which routers read without being told. */
function pickerFamilies(engine: Engine, counts: ServedCounts): Family[] {
  const { counts: now, totals, pages, info } = engine;
  const labels = { model_name: info.model };
  const as = (ours: string) => `As deltafold_${ours}.`;
  const one = (type: Family["type"], name: string, help: string, value: number) =>
    theirs(name, type, help, [{ labels, value }]);
  const histogram = (name: string, ours: string, values: Histogram) =>
    theirs(`${name}_seconds`, "histogram", as(`${ours}_seconds`), values.samples(labels));
  const { promptTokens, lookedUpTokens, cachedTokens, replyTokens } = totals;
  const { draftedTokens, acceptedTokens, parks } = totals;
  const config = { ...labels, block_size: String(pageRows), num_gpu_blocks: String(pages.total) };
  const cacheHelp = "Rows of a KV page, and how many pages there are.";
  const drafted = "spec_decode_num_draft_tokens_total";
  const accepted = "spec_decode_num_accepted_tokens_total";
  return [
    one("gauge", "num_requests_running", as("requests_running"), now.running),
    one("gauge", "num_requests_waiting", as("requests_waiting"), now.waiting),
    one("gauge", "kv_cache_usage_perc", as("kv_cache_usage_ratio"), usage(pages)),
    theirs("cache_config_info", "gauge", cacheHelp, [{ labels: config, value: 1 }]),
    one("counter", "prompt_tokens_total", as("prompt_tokens_total"), promptTokens),
    one("counter", "generation_tokens_total", as("generation_tokens_total"), replyTokens),
    one("counter", "num_preemptions_total", as("preemptions_total"), parks),
    one("counter", "prefix_cache_queries_total", "Prompt tokens looked up.", lookedUpTokens),
    one("counter", "prefix_cache_hits_total", as("prompt_tokens_cached_total"), cachedTokens),
    one("counter", drafted, as("draft_tokens_total"), draftedTokens),
    one("counter", accepted, as("draft_accepted_tokens_total"), acceptedTokens),
    histogram("e2e_request_latency", "request_latency", counts.latency),
    histogram("request_queue_time", "request_queue", counts.queue),
    histogram("time_to_first_token", "time_to_first_token", counts.firstToken),
    histogram("request_prefill_time", "request_prefill", counts.prefill),
    histogram("request_decode_time", "request_decode", counts.decode),
    histogram("request_time_per_output_token", "time_per_output_token", counts.outputToken),
  ];
}

const usage = ({ held, total }: Engine["pages"]): number => held / total;

const named =
  (prefix: string) =>
  (name: string, type: Family["type"], help: string, samples: readonly Sample[]): Family => ({
    name: prefix + name,
    type,
    help,
    samples,
  });
const own = named("deltafold_");
const theirs = named("vllm:");

const gauge = (name: string, help: string, value: number): Family =>
  own(name, "gauge", help, [{ labels: {}, value }]);

const counter = (name: string, help: string, value: number): Family =>
  own(`${name}_total`, "counter", help, [{ labels: {}, value }]);

const seconds = (name: string, help: string, values: Histogram): Family =>
  own(`${name}_seconds`, "histogram", help, values.samples({}));
