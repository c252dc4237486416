import type { TokenId } from "../ids.ts";

/**
 * A call of a rule that has not returned, and where those go on who made it: all calls of one rule at
 * one place of the text share a frame, so that there are as many frames as places at most, however
 * many ways of reading the text there are.
 */
export class Frame {
  readonly id: number;
  /** Where it returns to, each with the frame that is current there. */
  readonly places: number[] = [];
  readonly frames: Frame[] = [];
  /** What is read on behind it, once somebody asked. */
  returned: ParseState | null = null;
  /** The shortest way from its return to the text's end, once somebody asked. */
  way: FrameWay | null = null;

  constructor(id: number) {
    this.id = id;
  }
}

/** How many bytes end a text behind a frame, and where among the frame's places they begin. */
export interface FrameWay {
  readonly bytes: number;
  /** Rules that are returned from, the frame's among them. */
  readonly returns: number;
  readonly at: number;
}

/** The places of one frame at which a state reads on. */
export interface Group {
  readonly frame: Frame;
  /** Ascending. */
  readonly places: readonly number[];
}

/** Places, each with the frame that is current there. */
export interface Reads {
  readonly places: readonly number[];
  readonly frames: readonly Frame[];
}

/** All ways in which a text can have been read up to some place. */
export class ParseState {
  readonly groups: readonly Group[];
  /** Whether the text may end here. */
  readonly ended: boolean;
  /** By class of the next byte; null where none of that class can follow. */
  readonly next: (ParseState | null | undefined)[] = [];
  /** Where bytes are read, inside the rules that are called here; null until somebody asked. */
  reads: Reads | null = null;
  /** The fewest bytes that end the text, and the most of that behind any one token. */
  endingBytes: number | null = null;
  endingBytesBehind: number | null = null;
  /** The tokens that end the text; null: too many. */
  ending: readonly TokenId[] | null | undefined;

  constructor(groups: readonly Group[], ended: boolean) {
    this.groups = groups;
    this.ended = ended;
  }
}
