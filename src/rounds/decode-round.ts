import type { Backend, PassResult } from "../backend/backend.ts";
import type { Candidates } from "../backend/candidates.ts";
import { firstRows } from "../backend/windows.ts";
import { cutDrafts } from "../draft/cut-drafts.ts";
import type { Lattice } from "../draft/lattice.ts";
import type { Proposal } from "../draft/proposal.ts";
import { DeltafoldError } from "../errors.ts";
import { pageRows, roundRowsMax, windowRowsMax } from "../limits.ts";
import { planPass, type SegmentRequest } from "../model/plan.ts";
import { type Accepted, acceptWindow } from "./accept.ts";
import { blockSegment, extendContext, makeRoom } from "./drafter-context.ts";
import type { LiveStream, StreamEnd } from "./live-stream.ts";
import { streamSegment } from "./stream-segment.ts";

/** One stream's part of a round. */
interface Window {
  readonly stream: LiveStream;
  /** Whether its drafting was asked. */
  readonly asked: boolean;
  readonly proposal: Proposal | null;
}

/** Streams that ended in a round, and how. */
export type StreamEnds = readonly (readonly [LiveStream, StreamEnd])[];

/**
 * One round of the streams that decode: proposals, one pass over every stream's window, acceptance by
 * the target's own draws, and the keep of just the accepted rows.
 * @param elapsed ms of the round so far; null where it shares the device
 * @throws where a pass fails: then nobody knows what became of these streams
 */
export async function decodeRound(
  backend: Backend,
  streams: readonly LiveStream[],
  toError: (cause: unknown) => DeltafoldError,
  elapsed: () => number | null,
): Promise<StreamEnds> {
  const windows = await propose(backend, streams);
  const widths = new Map(windows.map((window) => [window.stream, rowsIn(window)]));
  makeRoom(backend, streams, (stream) => widths.get(stream)!);
  const handle = backend.verify(planPass(windows.map(windowSegment)));
  const { draws } = await backend.read(handle);
  const accepted = accept(windows, draws, toError);
  const ms = elapsed();
  for (const [index, window] of windows.entries()) {
    try {
      learn(window, accepted[index]!, ms);
    } catch (cause) {
      accepted[index] = { ...accepted[index]!, end: { reason: "error", error: toError(cause) } };
    }
  }
  const tried = accepted.filter((_, index) => windows[index]!.proposal !== null);
  if (tried.length > 0) {
    backend.keep(
      handle,
      tried.map(({ path }) => path),
    );
  }
  const ends: (readonly [LiveStream, StreamEnd])[] = [];
  windows.forEach(({ stream }, index) => {
    const { path, end } = accepted[index]!;
    stream.rows += path.length;
    if (end) ends.push([stream, end]);
  });
  return ends;
}

/** What each stream has proposed for it; blocks of the model drafter share a pass. */
async function propose(backend: Backend, streams: readonly LiveStream[]): Promise<Window[]> {
  const share = Math.min(windowRowsMax, Math.floor(roundRowsMax / streams.length));
  const blockRows = backend.info.drafter?.blockRows ?? Number.POSITIVE_INFINITY;
  const wishes = streams.map((stream) => {
    const most = Math.min(share, stream.tokensLeft) - 1;
    const blocks = stream.rows + blockRows <= stream.pagesMost * pageRows;
    const drafting = most > 0 ? stream.drafting : null;
    const wish = drafting?.wish(most, blocks, streams.length) ?? null;
    return { stream, most, blocks, wish };
  });
  const drafted = wishes
    .filter(({ wish, blocks }) => wish?.kind === "block" && blocks)
    .map(({ stream }) => stream);
  const lattices = await draftBlocks(backend, drafted);
  return wishes.map(({ stream, most, wish }) => {
    const asked = wish !== null;
    if (wish?.kind === "proposal") return { stream, asked, proposal: cut(stream, wish.proposal) };
    const lattice = lattices.get(stream);
    const position = stream.rows + 1;
    const proposal = lattice
      ? stream.drafting!.choose(lattice, stream.pending, position, most)
      : null;
    return { stream, asked, proposal: cut(stream, proposal) };
  });
}

/** Rows of drafts that the reply's form won't let through would be computed in vain. */
function cut({ request }: LiveStream, proposal: Proposal | null): Proposal | null {
  const ahead = proposal && request.constraint?.ahead();
  return ahead ? cutDrafts(proposal, ahead) : proposal;
}

/** Positions for which a stream needs pages before a round. */
export function roundPlaces({ info }: Backend, { rows, pagesMost }: LiveStream): number {
  const most = Math.max(windowRowsMax, info.drafter?.blockRows ?? 0);
  return Math.min(rows + most, pagesMost * pageRows);
}

async function draftBlocks(
  backend: Backend,
  streams: readonly LiveStream[],
): Promise<ReadonlyMap<LiveStream, Lattice>> {
  const { drafter, drawsMax, rowsMax } = backend.info;
  if (!drafter || streams.length === 0) return new Map();
  extendContext(backend, streams);
  const fit = Math.floor(Math.min(rowsMax / drafter.blockRows, drawsMax / (drafter.blockRows - 1)));
  const passes: Promise<ReadonlyMap<LiveStream, Lattice>>[] = [];
  for (let first = 0; first < streams.length; first += fit) {
    const some = streams.slice(first, first + fit);
    const handle = backend.draft(planPass(some.map((stream) => blockSegment(stream, drafter))));
    const result = backend.read(handle);
    passes.push(result.then((found) => latticesOf(some, found, drafter.blockRows - 1)));
  }
  return new Map((await Promise.all(passes)).flatMap((lattices) => [...lattices]));
}

/** A block with a row that isn't finite is no proposal: the target alone goes on. */
function latticesOf(
  streams: readonly LiveStream[],
  { draws, selector }: PassResult,
  depth: number,
): ReadonlyMap<LiveStream, Lattice> {
  const rank = (selector?.length ?? 0) / Math.max(1, draws.length);
  const lattices = new Map<LiveStream, Lattice>();
  streams.forEach((stream, index) => {
    const first = index * depth;
    const rows = draws.slice(first, first + depth).filter(isWhole);
    const queries = selector?.slice(first * rank, (first + depth) * rank) ?? null;
    if (rows.length === depth) lattices.set(stream, { rows, queries });
  });
  return lattices;
}

const isWhole = (draw: Candidates | DeltafoldError): draw is Candidates =>
  !(draw instanceof DeltafoldError);

const rowsIn = ({ proposal }: Window): number => 1 + (proposal?.ids.length ?? 0);

/** The pending token alone is a chain, committed by the pass itself. */
function windowSegment({ stream, proposal }: Window): SegmentRequest {
  const ids = [stream.pending, ...(proposal?.ids ?? [])];
  const parents = proposal?.parents ? [-1, ...proposal.parents.map((node) => node + 1)] : null;
  return {
    ...streamSegment(stream, stream.rows, ids),
    draw: "all",
    candidates: stream.candidatesNeeded,
    keepLogits: stream.request.fingerprint,
    window: proposal !== null,
    parents,
  };
}

/** What goes wrong with one stream's draws or listener is that stream's alone. */
function accept(
  windows: readonly Window[],
  draws: readonly (Candidates | DeltafoldError)[],
  toError: (cause: unknown) => DeltafoldError,
): Accepted[] {
  let firstDraw = 0;
  return windows.map((window) => {
    const first = firstDraw;
    firstDraw += rowsIn(window);
    try {
      return acceptWindow(window.stream, window.proposal, draws, first);
    } catch (cause) {
      const end = { reason: "error", error: toError(cause) } as const;
      return { path: firstRows(0), matched: 0, missed: false, end };
    }
  });
}

/** A window that failed says nothing of its drafts. */
function learn(
  { stream, asked, proposal }: Window,
  { path, matched, missed }: Accepted,
  ms: number | null,
): void {
  if (path.length === 0) return;
  const drafted = proposal?.ids.length ?? 0;
  stream.speculative.add(path.length, proposal?.drafter ?? null, drafted, matched);
  if (proposal) stream.drafting!.landed(proposal, matched, missed, ms);
  else if (asked) stream.drafting!.idle(ms);
}
