import type { Exchange, Served } from "./exchange.ts";
import { Histogram, LabelledCounter } from "./exposition.ts";

/** From a prompt that was cached to one that fills a long context on a slow machine. */
const requestSeconds = [
  ...[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5],
  ...[1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000],
];
const tokenSeconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

/** Counts requests that have ended. What streams do meanwhile, the engine counts. */
export class ServedCounts {
  readonly requests: LabelledCounter = new LabelledCounter();
  readonly replies: LabelledCounter = new LabelledCounter();
  /** Of requests whose replies ended by themselves. */
  readonly latency: Histogram = new Histogram(requestSeconds);
  /** Of such replies that had a slot; the last for those of two tokens or more. */
  readonly queue: Histogram = new Histogram(requestSeconds);
  readonly firstToken: Histogram = new Histogram(requestSeconds);
  readonly prefill: Histogram = new Histogram(requestSeconds);
  readonly decode: Histogram = new Histogram(requestSeconds);
  readonly outputToken: Histogram = new Histogram(tokenSeconds);
  #hangUps = 0;

  /** Clients that went before their reply's end. */
  get hangUps(): number {
    return this.#hangUps;
  }

  /** @param ms from the request to its end */
  add({ route, status, hungUp, streams, served }: Exchange, ms: number): void {
    this.requests.add({ route: route ?? "other", status: String(status) });
    if (hungUp) this.#hangUps++;
    for (const each of served) this.#addReply(each);
    const failures = streams.length - served.length;
    for (let count = 0; count < failures; count++) this.replies.add({ finish_reason: "error" });
    if (streams.length > 0 && failures === 0 && served.every(isWhole)) {
      this.latency.observe(ms / 1000);
    }
  }

  #addReply(served: Served): void {
    const { reply, queueMs, firstTokenMs } = served;
    this.replies.add({ finish_reason: reply.finishReason });
    if (!isWhole(served) || reply.ids.length === 0) return;
    const { prefillMs, decodeMs } = reply.timings;
    this.firstToken.observe(firstTokenMs / 1000);
    if (queueMs !== null) {
      this.queue.observe(queueMs / 1000);
      this.prefill.observe((prefillMs - queueMs) / 1000);
    }
    this.decode.observe(decodeMs / 1000);
    const later = reply.ids.length - 1;
    if (later > 0) this.outputToken.observe(decodeMs / 1000 / later);
  }
}

const isWhole = ({ reply }: Served): boolean => reply.finishReason !== "cancelled";
