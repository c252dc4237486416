import type { Backend, BackendInfo } from "../backend/backend.ts";
import type { Candidates } from "../backend/candidates.ts";
import { type Clock, nextTask, systemClock } from "../clock.ts";
import type { DraftingSource } from "../draft/drafting.ts";
import {
  BackendError,
  BackendLostError,
  DeltafoldError,
  invariant,
  messageOf,
  QueueFullError,
  RequestTooLargeError,
} from "../errors.ts";
import { streamId } from "../ids.ts";
import { decodeShareDefault, pageRows, queueRequestsMax, roundRowsMax } from "../limits.ts";
import { planPass, type SegmentRequest } from "../model/plan.ts";
import { chancesOf } from "../sampling/chances.ts";
import { contextFingerprint, stateFingerprint } from "../state/fingerprint.ts";
import { drawNext } from "./accept.ts";
import { decodeRound, roundPlaces, type StreamEnds } from "./decode-round.ts";
import { DecodeShare } from "./decode-share.ts";
import { extendContext, makeRoom } from "./drafter-context.ts";
import { FinishRate } from "./finish-rate.ts";
import { type BackendCondition, LiveBackend } from "./live-backend.ts";
import {
  LiveStream,
  onlyWarms,
  type RoundOutcome,
  type RoundRequest,
  type RoundSink,
} from "./live-stream.ts";
import { byTurn, nextToAdmit, nextToFill, passOver, promote, toYield } from "./schedule.ts";
import { type CacheOptions, StreamMemory } from "./stream-memory.ts";
import { streamSegment } from "./stream-segment.ts";
import { LoopTally, type LoopTotals } from "./totals.ts";

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
  /** Where prompts find what was computed before; without it nothing is cached. */
  readonly cache?: CacheOptions;
  /** Requests that may wait for a slot. */
  readonly queueMax?: number;
  /** The share of the time that replies have while prompts are computed, from 0 to below 1. */
  readonly decodeShare?: number;
  /** Opens a backend of the same sizes after a loss; null where that can't be. */
  readonly openAgain?: (() => Promise<Backend>) | null;
  readonly clock?: Clock;
}

/**
 * Serves all streams of one backend, a round at a time, for as long as there are any. A stream's
 * tokens depend on its own request alone: the schedule decides when rows are computed, never what
 * they hold, drafts decide in how few rounds, and the cache decides which rows are computed at all.
 * Where the backend is lost, the streams that it held end, those that wait go on waiting, and it is
 * opened again for them or for whoever comes next.
 */
export class RoundLoop implements AsyncDisposable {
  readonly #live: LiveBackend;
  readonly #chunkRows: number;
  readonly #drafting: DraftingSource | null;
  readonly #queueMax: number;
  readonly #clock: Clock;
  readonly #memory: StreamMemory;
  readonly #share: DecodeShare;
  readonly #rate = new FinishRate();
  readonly #tally = new LoopTally();
  readonly #streams: LiveStream[] = [];
  #running: Promise<void> | null = null;
  /** Ends the wait for a disk: there is something else to do. */
  #wake: () => void = () => {};
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
    this.#queueMax = options.queueMax ?? queueRequestsMax;
    this.#clock = clock;
    this.#memory = new StreamMemory(this.#live, options.cache ?? { bytesMax: 0, spill: null });
    this.#share = new DecodeShare(options.decodeShare ?? decodeShareDefault);
  }

  /** Those that only compute a prompt for the cache are none. */
  get counts(): LoopCounts {
    const replying = this.#streams.filter(({ request }) => !onlyWarms(request));
    const waiting = replying.filter(({ phase }) => phase === "waiting").length;
    return { waiting, running: replying.length - waiting };
  }

  /** What was done since it began. */
  get totals(): LoopTotals {
    return this.#tally.totals;
  }

  /** Pages that streams hold, and all there are. Those that are only cached are free for whoever comes. */
  get pages(): { readonly held: number; readonly total: number } {
    const held = new Set(this.#streams.flatMap(({ pages }) => pages?.pages ?? []));
    return { held: held.size, total: this.info.pages };
  }

  /** What the backend at hand is. */
  get info(): BackendInfo {
    return this.#live.current.info;
  }

  /** Whether the backend is there, and what is done where it is not. */
  get condition(): BackendCondition {
    return this.#live.condition;
  }

  /** Slots and pages that nobody holds: all slots where no stream is there; pages may be cached. */
  get free(): { readonly slots: number; readonly pages: number } {
    return this.#memory.free;
  }

  /** What is cached, and what it takes. */
  get cached(): { readonly entries: number; readonly bytes: number } {
    return this.#memory.cached;
  }

  /**
   * Queues a request. The returned function cancels it before its next round.
   * @throws QueueFullError; RequestTooLargeError; BackendError where the loop is closed, or the device
   *   lost for good
   */
  submit(request: RoundRequest, sink: RoundSink): () => void {
    const { lost, recoverable } = this.#live;
    if (lost && !recoverable) throw lost;
    if (this.#closed) throw new BackendError("The engine is closed.", undefined, "closed", 503);
    const { promptIds, maxTokens, sampling, draft } = request;
    invariant(promptIds.length > 0 && maxTokens >= 0, "an empty request");
    this.checkRoom(request);
    const drafting = draft ? (this.#drafting?.(sampling) ?? null) : null;
    if (drafting) for (const id of promptIds) drafting.push(id);
    const id = streamId(this.#nextId++);
    const stream = new LiveStream(id, request, sink, drafting, this.#clock.nowMs());
    this.#streams.push(stream);
    this.#running ??= this.#run();
    this.#wake();
    return () => {
      stream.cancelled = true;
      this.#wake();
    };
  }

  /**
   * Whether a request may come now, and could ever be served.
   * @throws RequestTooLargeError, QueueFullError
   */
  checkRoom(request: RoundRequest): void {
    const places = this.info.pages * pageRows;
    const tokens = request.promptIds.length + request.maxTokens;
    if (tokens > places) throw new RequestTooLargeError(tokens, places);
    // Passes that only warm the cache are bounded by those who ask for them.
    if (onlyWarms(request)) return;
    const background = request.priority === "background";
    // Those that a free slot awaits are not queued; nobody is refused for those that yield to him.
    const alike = this.#streams.filter(
      (each) =>
        each.phase === "waiting" && each.background === background && !onlyWarms(each.request),
    );
    const waiting = alike.length - this.#memory.free.slots;
    if (waiting >= this.#queueMax) throw new QueueFullError(waiting, this.#rate.secondsEach);
  }

  /** Resolves when no stream is there, and what was evicted is on disk. */
  async settled(): Promise<void> {
    while (this.#running) await this.#running;
    await this.#memory.written();
  }

  /** Cancels every stream, takes no more, waits for the last to end, and gives the backend back. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    for (const stream of this.#streams) stream.cancelled = true;
    this.#wake();
    await this.#running;
    await this.#memory.close(this.#clock);
    await this.#live[Symbol.asyncDispose]();
  }

  async #run(): Promise<void> {
    this.#rate.begin(this.#clock.nowMs());
    try {
      do {
        // Requests that arrive together share their first round, and a loss before them is heard of.
        await Promise.resolve();
        await this.#round().catch((cause: unknown) => this.#giveUp(cause));
      } while (this.#streams.length > 0);
    } finally {
      this.#running = null;
      this.#rate.idle(this.#clock.nowMs());
    }
  }

  async #round(): Promise<void> {
    const { lost } = this.#live;
    if (lost && !(await this.#recover(lost))) return;
    for (const stream of this.#streams.filter(({ cancelled }) => cancelled)) {
      await this.#finish(stream, "cancelled");
    }
    promote(this.#streams, this.#clock.nowMs());
    for (const stream of toYield(this.#streams)) {
      await this.#memory.park(stream);
      if (!onlyWarms(stream.request)) this.#tally.parked(1);
    }
    await this.#admit();
    const { filling, decoding } = await this.#prepare();
    const fill = filling && this.#fill(filling);
    const decode = decoding.length > 0 ? this.#decode(decoding, fill === null) : null;
    if (!fill && !decode) await this.#idle();
    // Not before both are over: a window that keeps logits bears no pass before its keep, and what
    // follows may take one.
    const ends = (await this.#share.wait(this.#clock, fill, decode)).flat();
    // Those that failed first: their windows were not kept, and bear no pass either.
    const failed = ends.filter(([, { reason }]) => reason === "error");
    for (const [stream, { reason, error }] of failed) await this.#finish(stream, reason, error);
    if (filling && filling.phase !== "done") await this.#keepAtMark(filling);
    for (const [stream, { reason, error }] of ends) await this.#finish(stream, reason, error);
  }

  get #holders(): LiveStream[] {
    return this.#streams.filter(({ slot }) => slot !== null);
  }

  /** Of those, whom somebody waits for. */
  get #replying(): LiveStream[] {
    return this.#holders.filter(({ request }) => !onlyWarms(request));
  }

  async #admit(): Promise<void> {
    for (;;) {
      const stream = nextToAdmit(this.#streams);
      if (!stream || !this.#memory.canAdmit(stream, this.#holders)) return;
      try {
        this.#memory.admit(stream);
        stream.admittedMs ??= this.#clock.nowMs();
      } catch (cause) {
        await this.#finish(stream, "error", this.#failure(cause));
        if (this.#live.lost) return;
      }
    }
  }

  /** Who is fed in this round: each has the pages for it. */
  async #prepare(): Promise<{ filling: LiveStream | null; decoding: readonly LiveStream[] }> {
    const decoding = this.#streams.filter(({ phase }) => phase === "decoding");
    const due = this.#share.fillDue || decoding.length === 0;
    const next = due ? await this.#nextToFill() : null;
    const fed = [...decoding, ...(next ? [next] : [])].sort(byTurn);
    const holders = this.#replying.length;
    for (const stream of fed) {
      // One that was served before it may have taken its slot.
      if (stream.slot === null) continue;
      const places =
        stream === next ? next.rows + this.#chunkOf(next) : roundPlaces(this.#live.current, stream);
      await this.#memory.grow(stream, places, this.#holders);
    }
    this.#tally.parked(holders - this.#replying.length);
    const ready = (stream: LiveStream) => stream.slot !== null;
    const filling = next && ready(next) ? next : null;
    if (filling) passOver(this.#streams, filling);
    return { filling, decoding: decoding.filter(ready) };
  }

  /** Whose prompt gets the next chunk, now that it is known where it goes on from. */
  async #nextToFill(): Promise<LiveStream | null> {
    for (;;) {
      const next = nextToFill(this.#streams);
      // While its state is read from a disk, others have their turns.
      if (!next || next.begun || (await this.#memory.begin(next))) return next;
    }
  }

  /** Nothing can be fed: states are being read, or a stream has just given way. */
  async #idle(): Promise<void> {
    const reading = this.#streams.flatMap(({ reading: each }) => each ?? []);
    if (reading.length === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    await Promise.race([...reading, promise]);
  }

  /**
   * Ends what the lost backend held, and opens it again where anybody waits for it.
   * @returns whether there is a backend now
   */
  async #recover(lost: BackendLostError): Promise<boolean> {
    await this.#endAll((stream) => stream.slot !== null || stream.cancelled, lost);
    this.#memory.clear();
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

  /** What fails besides passes is no one stream's: whoever has a slot ends. A loss, as always, next. */
  async #giveUp(cause: unknown): Promise<void> {
    const error = this.#failure(cause);
    if (error instanceof BackendLostError) return;
    const holders = this.#holders;
    for (const stream of holders.length > 0 ? holders : [...this.#streams]) {
      // It ends whatever is wrong with what it held.
      await this.#finish(stream, "error", error).catch(() => {});
    }
  }

  async #endAll(which: (stream: LiveStream) => boolean, error: DeltafoldError): Promise<void> {
    for (const stream of this.#streams.filter(which)) {
      if (stream.cancelled) await this.#finish(stream, "cancelled");
      else await this.#finish(stream, "error", error);
    }
  }

  /** Rows of a stream's next chunk, which ends where its state is to be kept. */
  #chunkOf({ rows, toFill, request }: LiveStream): number {
    const rowsMax = request.promptChances
      ? Math.min(this.#chunkRows, this.info.drawsMax)
      : this.#chunkRows;
    const most = Math.min(rowsMax, toFill);
    const mark = request.marks?.find((each) => each.rows > rows);
    return mark ? Math.min(most, mark.rows - rows) : most;
  }

  /** One chunk of what a stream has to be fed; where it is to decode, the last row draws. */
  async #fill(stream: LiveStream): Promise<StreamEnds> {
    const rows = this.#chunkOf(stream);
    const last = stream.toFill === rows;
    const draws = last && stream.request.maxTokens > 0;
    const { promptChances = false } = stream.request;
    const count = this.#tally.began("prompt", [stream]);
    try {
      const backend = this.#live.current;
      makeRoom(backend, [stream], () => rows);
      const plan = planPass([
        chunkSegment(stream, rows, promptChances ? "all" : draws ? "last" : "none"),
      ]);
      const result = await backend.read(backend.prefill(plan));
      if (promptChances) await tellChances(stream, result.draws);
      stream.rows += rows;
      if (!last) return [];
      this.#tally.prompted(stream);
      if (!draws) return [[stream, { reason: "length", error: null }]];
      const end = drawNext(stream, result.draws.at(-1)!, stream.ids.length);
      stream.phase = "decoding";
      return end ? [[stream, end]] : [];
    } catch (cause) {
      return [[stream, { reason: "error", error: this.#failure(cause) }]];
    } finally {
      count();
    }
  }

  async #keepAtMark(stream: LiveStream): Promise<void> {
    const { rows, request } = stream;
    const mark = request.marks?.find((each) => each.rows === rows);
    if (!mark || this.#live.lost) return;
    await this.#memory.keep(stream, mark.kind);
  }

  /** @param alone whether the round has the device to itself */
  async #decode(streams: readonly LiveStream[], alone: boolean): Promise<StreamEnds> {
    const start = this.#clock.nowMs();
    const timed = alone && streams.length === 1;
    const elapsed = () => (timed ? this.#clock.nowMs() - start : null);
    const toError = (cause: unknown) => this.#failure(cause);
    const count = this.#tally.began("round", streams);
    try {
      return await decodeRound(this.#live.current, streams, toError, elapsed);
    } catch (cause) {
      const end = { reason: "error", error: this.#failure(cause) } as const;
      return streams.map((stream) => [stream, end] as const);
    } finally {
      count();
    }
  }

  async #finish(
    stream: LiveStream,
    reason: RoundOutcome["reason"],
    error: DeltafoldError | null = null,
  ): Promise<void> {
    if (stream.phase === "done") return;
    let outcome: Ending = { reason, error, ...noPrints };
    try {
      if (reason === "error") this.#memory.forget(stream);
      else outcome = { reason, error, ...(await this.#conclude(stream, reason)) };
    } catch (cause) {
      this.#memory.forget(stream);
      outcome = { reason: "error", error: this.#failure(cause), ...noPrints };
    }
    stream.phase = "done";
    this.#streams.splice(this.#streams.indexOf(stream), 1);
    try {
      this.#memory.release(stream);
    } finally {
      if (!stream.background) this.#rate.add(this.#clock.nowMs());
      tellEnd(stream, outcome);
    }
  }

  /** Keeps what a reply leaves that didn't fail, and takes its fingerprints. */
  async #conclude(stream: LiveStream, reason: RoundOutcome["reason"]): Promise<Prints> {
    if (stream.slot === null || stream.rows === 0) return noPrints;
    const wanted = stream.request.fingerprint && reason !== "cancelled";
    const prints = wanted ? await this.#fingerprint(stream) : noPrints;
    await this.#memory.keep(stream, "reply");
    return prints;
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
    const message = messageOf(cause);
    return new BackendError(`The pass failed: ${message}`, cause);
  }
}

type Prints = Pick<RoundOutcome, "stateSha" | "contextSha">;
type Ending = Prints & Pick<RoundOutcome, "reason" | "error">;
const noPrints: Prints = { stateSha: null, contextSha: null };

function tellEnd(stream: LiveStream, ending: Ending): void {
  const { cached, sink, admittedMs, atMs } = stream;
  const { rows: cachedRows, miss: cacheMiss } = cached ?? { rows: 0, miss: null };
  const queueMs = admittedMs === null ? null : admittedMs - atMs;
  try {
    const { counts: speculative } = stream.speculative;
    sink.finished({ ...ending, speculative, cachedRows, cacheMiss, queueMs });
  } catch {
    // The stream has ended whatever its listener makes of it; the others go on.
  }
}

/** How likely the prompt's tokens were that follow the rows of a chunk. */
async function tellChances(
  stream: LiveStream,
  draws: readonly (Candidates | DeltafoldError)[],
): Promise<void> {
  const { promptIds, topChances = 0 } = stream.request;
  for (const [row, draw] of draws.entries()) {
    const position = stream.rows + row + 1;
    const id = promptIds[position];
    if (id === undefined) return;
    if (draw instanceof DeltafoldError) throw draw;
    // To order a whole row takes long, and others want to be heard in between.
    await nextTask();
    stream.sink.promptToken?.(position, chancesOf(draw, id, topChances));
  }
}

/** The next rows of what a stream has to be fed. */
function chunkSegment(
  stream: LiveStream,
  rows: number,
  draw: SegmentRequest["draw"],
): SegmentRequest {
  return {
    ...streamSegment(stream, stream.rows, stream.ids.slice(stream.rows, stream.rows + rows)),
    draw,
    candidates: stream.candidatesNeeded,
    keepLogits: stream.request.fingerprint,
  };
}
