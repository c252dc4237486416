import type { Backend, BackendInfo } from "../backend/backend.ts";
import { type Clock, systemClock } from "../clock.ts";
import type { DraftingSource } from "../draft/drafting.ts";
import {
  BackendError,
  type BackendLostError,
  DeltafoldError,
  invariant,
  QueueFullError,
} from "../errors.ts";
import { streamId } from "../ids.ts";
import { queueRequestsMax, roundRowsMax } from "../limits.ts";
import { planPass, type SegmentRequest } from "../model/plan.ts";
import { contextFingerprint, stateFingerprint } from "../state/fingerprint.ts";
import { PagePool, PageTable } from "../state/kv-pages.ts";
import { SlotPool } from "../state/slots.ts";
import { drawNext } from "./accept.ts";
import { decodeRound, type StreamEnds } from "./decode-round.ts";
import { extendContext, makeRoom } from "./drafter-context.ts";
import { type BackendCondition, LiveBackend } from "./live-backend.ts";
import { LiveStream, type RoundOutcome, type RoundRequest, type RoundSink } from "./live-stream.ts";
import { schedule } from "./schedule.ts";
import { growPages, streamSegment } from "./stream-segment.ts";

/** Streams by what they do right now. */
export interface LoopCounts {
  readonly waiting: number;
  readonly running: number;
}

export interface LoopOptions {
  /** Rows of a prompt chunk; results don't depend on it. */
  readonly chunkRows: number;
  /** What proposes for streams; without it nothing is drafted. */
  readonly drafting?: DraftingSource | null;
  /** Opens a backend of the same sizes after a loss; null where that can't be. */
  readonly openAgain?: (() => Promise<Backend>) | null;
  readonly clock?: Clock;
}

/**
 * Serves all streams of one backend, a round at a time, for as long as there are any. A stream's
 * tokens depend on its own request alone: the schedule decides when rows are computed, never what
 * they hold, and drafts decide in how few rounds. Where the backend is lost, the streams that it held
 * end, those that wait go on waiting, and it is opened again for them or for whoever comes next.
 */
export class RoundLoop implements AsyncDisposable {
  readonly #live: LiveBackend;
  readonly #chunkRows: number;
  readonly #drafting: DraftingSource | null;
  readonly #clock: Clock;
  readonly #slots: SlotPool;
  readonly #pages: PagePool;
  readonly #streams: LiveStream[] = [];
  #running: Promise<void> | null = null;
  #nextId = 0;
  #closed = false;

  /** @param backend the loop's own from now on */
  constructor(backend: Backend, options: LoopOptions) {
    const { chunkRows, drafting = null, openAgain = null, clock = systemClock } = options;
    invariant(chunkRows > 0 && chunkRows <= backend.info.rowsMax, `prompt chunks of ${chunkRows}`);
    invariant(backend.info.slots <= roundRowsMax, `${backend.info.slots} slots in one round`);
    this.#live = new LiveBackend(backend, openAgain);
    this.#chunkRows = chunkRows;
    this.#drafting = drafting;
    this.#clock = clock;
    this.#slots = new SlotPool(backend.info.slots);
    this.#pages = new PagePool(backend.info.pages);
  }

  get counts(): LoopCounts {
    const waiting = this.#streams.filter((stream) => stream.phase === "waiting").length;
    return { waiting, running: this.#streams.length - waiting };
  }

  /** What the backend at hand is. */
  get info(): BackendInfo {
    return this.#live.current.info;
  }

  /** Whether the backend is there, and what is done where it is not. */
  get condition(): BackendCondition {
    return this.#live.condition;
  }

  /** Slots and pages that nobody holds; all of them when no stream is there. */
  get free(): { readonly slots: number; readonly pages: number } {
    return { slots: this.#slots.freeCount, pages: this.#pages.freeCount };
  }

  /**
   * Queues a request. The returned function cancels it before its next round.
   * @throws QueueFullError; BackendError where the loop is closed, or the device lost for good
   */
  submit(request: RoundRequest, sink: RoundSink): () => void {
    const { lost, recoverable } = this.#live;
    if (lost && !recoverable) throw lost;
    if (this.#closed) throw new BackendError("The engine is closed.");
    // Those that a free slot awaits are not queued.
    const waiting = this.counts.waiting - this.#slots.freeCount;
    if (waiting >= queueRequestsMax) throw new QueueFullError(waiting);
    invariant(request.promptIds.length > 0 && request.maxTokens > 0, "an empty request");
    const drafting = request.draft ? (this.#drafting?.(request.sampling) ?? null) : null;
    if (drafting) for (const id of request.promptIds) drafting.push(id);
    const stream = new LiveStream(streamId(this.#nextId++), request, sink, drafting);
    this.#streams.push(stream);
    this.#running ??= this.#run();
    return () => {
      stream.cancelled = true;
    };
  }

  /** Cancels every stream, takes no more, waits for the last to end, and gives the backend back. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    for (const stream of this.#streams) stream.cancelled = true;
    await this.#running;
    await this.#live[Symbol.asyncDispose]();
  }

  async #run(): Promise<void> {
    try {
      do {
        // Requests that arrive together share their first round, and a loss before them is heard of.
        await Promise.resolve();
        await this.#round();
      } while (this.#streams.length > 0);
    } finally {
      this.#running = null;
    }
  }

  async #round(): Promise<void> {
    const { lost } = this.#live;
    if (lost && !(await this.#recover(lost))) return;
    const { cancelled, admitted, filling, decoding } = schedule(
      this.#streams,
      this.#slots.freeCount,
    );
    for (const stream of cancelled) await this.#finish(stream, "cancelled");
    for (const stream of admitted) await this.#admit(stream);
    const passes: Promise<StreamEnds>[] = [];
    if (filling?.phase === "filling") passes.push(this.#fill(filling));
    if (decoding.length > 0) passes.push(this.#decode(decoding, passes.length === 0));
    // Not before both are over: a window that keeps logits bears no pass before its keep, and a
    // fingerprint may take one.
    const ends = (await Promise.all(passes)).flat();
    for (const [stream, { reason, error }] of ends) await this.#finish(stream, reason, error);
  }

  /**
   * Ends what the lost backend held, and opens it again where anybody waits for it.
   * @returns whether there is a backend now
   */
  async #recover(lost: BackendLostError): Promise<boolean> {
    await this.#endAll((stream) => stream.slot !== null || stream.cancelled, lost);
    if (this.#streams.length === 0) return false;
    try {
      await this.#live.reopen();
      return true;
    } catch (cause) {
      // Whoever came while it was tried is told too; the next request tries again.
      await this.#endAll(() => true, this.#failure(cause));
      return false;
    }
  }

  async #endAll(which: (stream: LiveStream) => boolean, error: DeltafoldError): Promise<void> {
    for (const stream of this.#streams.filter(which)) {
      if (stream.cancelled) await this.#finish(stream, "cancelled");
      else await this.#finish(stream, "error", error);
    }
  }

  async #admit(stream: LiveStream): Promise<void> {
    stream.slot = this.#slots.take();
    invariant(stream.slot !== null, "admitted without a slot");
    stream.pages = new PageTable(this.#pages);
    stream.phase = "filling";
    try {
      this.#live.current.open(stream.slot);
    } catch (cause) {
      await this.#finish(stream, "error", this.#failure(cause));
    }
  }

  /** One chunk of a prompt; its last row draws the reply's first token. */
  async #fill(stream: LiveStream): Promise<StreamEnds> {
    const { promptIds } = stream.request;
    const rows = Math.min(this.#chunkRows, stream.promptLeft);
    const last = stream.promptLeft === rows;
    try {
      const backend = this.#live.current;
      makeRoom(backend, [stream], () => rows);
      const plan = planPass([chunkSegment(stream, rows, last)]);
      const { draws } = await backend.read(backend.prefill(plan));
      stream.rows += rows;
      if (!last) return [];
      const end = drawNext(stream, draws[0]!, promptIds.length);
      stream.phase = "decoding";
      return end ? [[stream, end]] : [];
    } catch (cause) {
      return [[stream, { reason: "error", error: this.#failure(cause) }]];
    }
  }

  /** @param alone whether the round has the device to itself */
  async #decode(streams: readonly LiveStream[], alone: boolean): Promise<StreamEnds> {
    const start = this.#clock.nowMs();
    const timed = alone && streams.length === 1;
    const elapsed = () => (timed ? this.#clock.nowMs() - start : null);
    const toError = (cause: unknown) => this.#failure(cause);
    try {
      return await decodeRound(this.#live.current, streams, toError, elapsed);
    } catch (cause) {
      const end = { reason: "error", error: this.#failure(cause) } as const;
      return streams.map((stream) => [stream, end] as const);
    }
  }

  async #finish(
    stream: LiveStream,
    reason: RoundOutcome["reason"],
    error: DeltafoldError | null = null,
  ): Promise<void> {
    if (stream.phase === "done") return;
    let outcome: Omit<RoundOutcome, "speculative"> = { reason, error, ...noPrints };
    if (stream.request.fingerprint && (reason === "stop" || reason === "length")) {
      try {
        outcome = { reason, error, ...(await this.#fingerprint(stream)) };
      } catch (cause) {
        outcome = { reason: "error", error: this.#failure(cause), ...noPrints };
      }
    }
    stream.phase = "done";
    this.#streams.splice(this.#streams.indexOf(stream), 1);
    if (stream.slot !== null) {
      // A lost backend may never have opened it, and what it held is gone.
      if (!this.#live.lost) this.#live.current.release(stream.slot);
      this.#slots.give(stream.slot);
      stream.pages!.release();
    }
    try {
      stream.sink.finished({ ...outcome, speculative: stream.speculative.counts });
    } catch {
      // The stream has ended whatever its listener makes of it; the others go on.
    }
  }

  async #fingerprint(stream: LiveStream): Promise<Prints> {
    const { slot, pages, rows } = stream;
    const backend = this.#live.current;
    extendContext(backend, [stream]);
    const snapshot = await backend.save(slot!, pages!.pages, rows);
    const drafts = backend.info.drafter && stream.drafting;
    return {
      stateSha: stateFingerprint(snapshot),
      contextSha: drafts ? contextFingerprint(snapshot) : null,
    };
  }

  /** What to tell the streams that ended by `cause`. */
  #failure(cause: unknown): DeltafoldError {
    this.#live.note(cause);
    if (cause instanceof DeltafoldError) return cause;
    const message = cause instanceof Error ? cause.message : String(cause);
    return new BackendError(`The pass failed: ${message}`, cause);
  }
}

type Prints = Pick<RoundOutcome, "stateSha" | "contextSha">;
const noPrints: Prints = { stateSha: null, contextSha: null };

/** The next rows of a stream's prompt. */
function chunkSegment(stream: LiveStream, rows: number, last: boolean): SegmentRequest {
  const { promptIds, fingerprint } = stream.request;
  growPages(stream, rows);
  return {
    ...streamSegment(stream, stream.rows, promptIds.slice(stream.rows, stream.rows + rows)),
    draw: last ? "last" : "none",
    candidates: stream.candidatesNeeded,
    keepLogits: fingerprint,
  };
}
