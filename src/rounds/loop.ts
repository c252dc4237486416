import type { Backend, BackendInfo, PassHandle } from "../backend/backend.ts";
import type { Candidates } from "../backend/candidates.ts";
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
import { drawToken } from "../sampling/draw.ts";
import { candidatesNeeded } from "../sampling/params.ts";
import { stateFingerprint } from "../state/fingerprint.ts";
import { PagePool, PageTable } from "../state/kv-pages.ts";
import { SlotPool } from "../state/slots.ts";
import { type BackendCondition, LiveBackend } from "./live-backend.ts";
import { LiveStream, type RoundOutcome, type RoundRequest, type RoundSink } from "./live-stream.ts";
import { schedule } from "./schedule.ts";

/** Streams by what they do right now. */
export interface LoopCounts {
  readonly waiting: number;
  readonly running: number;
}

/**
 * Serves all streams of one backend, a round at a time, for as long as there are any. A stream's
 * tokens depend on its own request alone: the schedule decides when rows are computed, never what
 * they hold. Where the backend is lost, the streams that it held end, those that wait go on waiting,
 * and it is opened again for them or for whoever comes next.
 */
export class RoundLoop implements AsyncDisposable {
  readonly #live: LiveBackend;
  readonly #chunkRows: number;
  readonly #slots: SlotPool;
  readonly #pages: PagePool;
  readonly #streams: LiveStream[] = [];
  #running: Promise<void> | null = null;
  #nextId = 0;
  #closed = false;

  /**
   * @param backend the loop's own from now on
   * @param chunkRows rows of a prompt chunk; results don't depend on it
   * @param openAgain opens a backend of the same sizes after a loss; null where that can't be
   */
  constructor(
    backend: Backend,
    chunkRows: number,
    openAgain: (() => Promise<Backend>) | null = null,
  ) {
    invariant(chunkRows > 0 && chunkRows <= backend.info.rowsMax, `prompt chunks of ${chunkRows}`);
    invariant(backend.info.slots <= roundRowsMax, `${backend.info.slots} slots in one round`);
    this.#live = new LiveBackend(backend, openAgain);
    this.#chunkRows = chunkRows;
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
    const stream = new LiveStream(streamId(this.#nextId++), request, sink);
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
    // Requests that arrive in one turn of the event loop share their first round.
    await Promise.resolve();
    try {
      while (this.#streams.length > 0) await this.#round();
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
    const passes: Promise<void>[] = [];
    if (filling?.phase === "filling") passes.push(this.#fill(filling));
    if (decoding.length > 0) passes.push(this.#decode(decoding));
    await Promise.all(passes);
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
  async #fill(stream: LiveStream): Promise<void> {
    const { promptIds } = stream.request;
    const rows = Math.min(this.#chunkRows, stream.promptLeft);
    const ids = promptIds.slice(stream.rows, stream.rows + rows);
    const last = stream.promptLeft === rows;
    await this.#pass(
      [stream],
      (segments) => this.#live.current.prefill(planPass(segments)),
      [ids],
      last,
    );
    if (stream.phase !== "filling" || !last) return;
    stream.phase = "decoding";
  }

  /** One row for every decoding stream: its pending token. */
  async #decode(streams: readonly LiveStream[]): Promise<void> {
    const ids = streams.map((stream) => [stream.pending]);
    await this.#pass(
      streams,
      (segments) => this.#live.current.verify(planPass(segments)),
      ids,
      true,
    );
  }

  /** Runs a pass over the streams' rows and delivers what was drawn. */
  async #pass(
    streams: readonly LiveStream[],
    give: (segments: readonly SegmentRequest[]) => PassHandle,
    ids: readonly (readonly number[])[],
    draw: boolean,
  ): Promise<void> {
    try {
      const segments = streams.map((stream, index) => this.#segment(stream, ids[index]!, draw));
      const { draws } = await this.#live.current.read(give(segments));
      for (const [index, stream] of streams.entries()) {
        stream.rows += ids[index]!.length;
        if (draw) await this.#deliver(stream, draws[index]!);
      }
    } catch (cause) {
      const error = this.#failure(cause);
      for (const stream of streams) await this.#finish(stream, "error", error);
    }
  }

  #segment(stream: LiveStream, ids: readonly number[], draw: boolean): SegmentRequest {
    const { slot, pages, rows, request } = stream;
    invariant(slot !== null && pages !== null, "a stream without a slot in a round");
    const grown = pages.grow(rows + ids.length);
    invariant(grown, "the KV pages ran out: admission must keep every stream's pages");
    return {
      ids,
      start: rows,
      stateSlot: slot,
      nextSlot: slot,
      pages: pages.pages,
      draw: draw ? "last" : "none",
      candidates: candidatesNeeded(request.sampling),
      keepLogits: request.fingerprint,
    };
  }

  /** Draws a stream's next token and hands it over. What goes wrong here is this stream's alone. */
  async #deliver(stream: LiveStream, candidates: Candidates | DeltafoldError): Promise<void> {
    try {
      if (candidates instanceof DeltafoldError) throw candidates;
      await this.#draw(stream, candidates);
    } catch (cause) {
      await this.#finish(stream, "error", this.#failure(cause));
    }
  }

  async #draw(stream: LiveStream, candidates: Candidates): Promise<void> {
    const { sampling, eosIds, maxTokens } = stream.request;
    if (stream.replyTokens === 0) stream.sink.prefilled();
    stream.pending = drawToken(candidates, sampling, stream.rows);
    stream.replyTokens++;
    const stopped = stream.sink.token(stream.pending);
    if (stopped || eosIds.has(stream.pending)) await this.#finish(stream, "stop");
    else if (stream.replyTokens === maxTokens) await this.#finish(stream, "length");
  }

  async #finish(
    stream: LiveStream,
    reason: RoundOutcome["reason"],
    error: DeltafoldError | null = null,
  ): Promise<void> {
    if (stream.phase === "done") return;
    const complete = reason === "stop" || reason === "length";
    const stateSha =
      complete && stream.request.fingerprint ? await this.#fingerprint(stream) : null;
    stream.phase = "done";
    this.#streams.splice(this.#streams.indexOf(stream), 1);
    if (stream.slot !== null) {
      // A lost backend may never have opened it, and what it held is gone.
      if (!this.#live.lost) this.#live.current.release(stream.slot);
      this.#slots.give(stream.slot);
      stream.pages!.release();
    }
    try {
      stream.sink.finished({ reason, error, stateSha });
    } catch {
      // The stream has ended whatever its listener makes of it; the others go on.
    }
  }

  async #fingerprint(stream: LiveStream): Promise<string> {
    const { slot, pages, rows } = stream;
    return stateFingerprint(await this.#live.current.save(slot!, pages!.pages, rows));
  }

  /** What to tell the streams that ended by `cause`. */
  #failure(cause: unknown): DeltafoldError {
    this.#live.note(cause);
    if (cause instanceof DeltafoldError) return cause;
    const message = cause instanceof Error ? cause.message : String(cause);
    return new BackendError(`The pass failed: ${message}`, cause);
  }
}
