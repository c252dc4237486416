import type { Candidates } from "../backend/candidates.ts";
import type { Proposal } from "../draft/proposal.ts";
import { DeltafoldError } from "../errors.ts";
import type { TokenId } from "../ids.ts";
import { chancesOf } from "../sampling/chances.ts";
import type { LiveStream, StreamEnd } from "./live-stream.ts";

/** What a round did for a stream. */
export interface Accepted {
  /** Rows of the window to keep, the pending token's first. */
  readonly path: readonly number[];
  /** Proposed tokens that were drawn. */
  readonly matched: number;
  /** Whether a proposed token was found wrong. */
  readonly missed: boolean;
  readonly end: StreamEnd | null;
}

/**
 * Draws a stream's next token and hands it over.
 * @returns the reply's end where this is its last token
 */
export function drawNext(
  stream: LiveStream,
  candidates: Candidates | DeltafoldError,
  position: number,
): StreamEnd | null {
  if (candidates instanceof DeltafoldError) return { reason: "error", error: candidates };
  const { sampler, sink, request } = stream;
  if (stream.replyTokens === 0) sink.prefilled();
  sink.row?.(candidates);
  const id = sampler.draw(candidates, position);
  stream.ids.push(id);
  sampler.commit(id);
  stream.drafting?.push(id);
  stream.replyTokens++;
  const { topChances } = request;
  const chances = topChances === undefined ? null : chancesOf(candidates, id, topChances);
  const stopped = sink.token(id, chances);
  if (stopped || request.eosIds.has(id)) return { reason: "stop", error: null };
  if (stream.replyTokens === request.maxTokens) return { reason: "length", error: null };
  return null;
}

/**
 * Walks a window from the pending token on: the target's own draw at each row decides which child, if
 * any, is right. So the tokens are those that a row a round would draw, whatever was proposed.
 * @param draws of the pass; the window's begin at `firstDraw`
 */
export function acceptWindow(
  stream: LiveStream,
  proposal: Proposal | null,
  draws: readonly (Candidates | DeltafoldError)[],
  firstDraw: number,
): Accepted {
  const path = [0];
  let matched = 0;
  for (;;) {
    const row = path.at(-1)!;
    const end = drawNext(stream, draws[firstDraw + row]!, stream.rows + path.length);
    const child = proposal && childOf(proposal, row, stream.pending);
    const failed = end?.reason === "error";
    if (child !== null && !failed) matched++;
    if (child === null || end || stream.cancelled) {
      const missed = child === null && !failed && proposal !== null && hasChild(proposal, row);
      return { path, matched, missed, end };
    }
    path.push(child);
  }
}

/** Whether anything was proposed to follow a row. */
const hasChild = ({ ids, parents }: Proposal, row: number): boolean =>
  parents ? parents.includes(row - 1) : row < ids.length;

/** The row that holds `id` behind this row; rows are nodes shifted by the pending token's. */
function childOf({ ids, parents }: Proposal, row: number, id: TokenId): number | null {
  const node = ids.findIndex(
    (proposed, index) => proposed === id && (parents ? parents[index]! : index - 1) === row - 1,
  );
  return node < 0 ? null : node + 1;
}
