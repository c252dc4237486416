import { grammarStateItemsMax, grammarTokenStepsMax } from "../limits.ts";
import { Agenda } from "./agenda.ts";
import { tooComplex } from "./form-work.ts";
import { Frame, type Group, ParseState, type Reads } from "./parse-state.ts";
import { byteClasses, ops, type Program } from "./program.ts";

/** What a place takes to be looked at, and a state to be made, in steps of a walk along known states. */
const placeSteps = 8;
const stateSteps = 32;

/**
 * Runs a program over bytes, in all ways at once. States are made as they are needed and kept, and
 * what is the same state is the same object: reading goes from state to state by a table.
 */
export class Automaton {
  /** The frame of what is read as a whole: who returns from it has ended. */
  readonly outermost: Frame = new Frame(0);
  readonly #program: Program;
  readonly #classes: Uint8Array;
  readonly #classCount: number;
  readonly #agenda: Agenda;
  readonly #tokenStepsMax: number;
  #start: ParseState | null = null;
  #states = new Map<string, ParseState>();
  /** Places of these states, and of their tables. */
  #items = 0;
  #frames = 1;
  #steps = 0;
  #stepsMax: number;

  /** @param tokenStepsMax the work for one token */
  constructor(program: Program, tokenStepsMax: number = grammarTokenStepsMax) {
    this.#program = program;
    this.#tokenStepsMax = tokenStepsMax;
    this.#stepsMax = tokenStepsMax;
    this.#agenda = new Agenda(this.outermost, program.live);
    const { classes, count } = byteClasses(program);
    this.#classes = classes;
    this.#classCount = count;
  }

  /** Where nothing has been read. */
  get start(): ParseState {
    this.#start ??= this.stateAt([this.#program.start]);
    return this.#start;
  }

  /** Whether anything at all can be written. */
  get possible(): boolean {
    return this.start.ended || this.start.groups.length > 0;
  }

  /** Begins the work for a token, which is bounded. @param stepsMax of this one */
  beginToken(stepsMax: number = this.#tokenStepsMax): void {
    this.#steps = 0;
    this.#stepsMax = stepsMax;
  }

  /** @throws InputError where a token takes too much work */
  spend(steps: number): void {
    this.#steps += steps;
    if (this.#steps > this.#stepsMax) {
      throw tooComplex("can be read in too many ways at once to be followed");
    }
  }

  /** The state after one more byte, or null where it can't follow. */
  step(state: ParseState, byte: number): ParseState | null {
    const known = state.next[this.#classes[byte]!];
    return known === undefined ? this.#step(state, byte) : known;
  }

  /** The state after some more bytes, or null where they can't follow. */
  read(from: ParseState, bytes: Uint8Array): ParseState | null {
    let state: ParseState | null = from;
    for (const byte of bytes) state = state && this.step(state, byte);
    return state;
  }

  /** A state of the outermost frame. */
  stateAt(places: readonly number[]): ParseState {
    this.#agenda.clear();
    for (const place of places) this.#agenda.add(place, this.outermost);
    return this.#settle();
  }

  /** What is read on behind a frame. */
  returned(frame: Frame): ParseState {
    if (frame.returned) return frame.returned;
    this.#agenda.clear();
    for (const [at, place] of frame.places.entries()) this.#agenda.add(place, frame.frames[at]!);
    frame.returned = this.#settle();
    return frame.returned;
  }

  /** For a place of a frame one of which the next token's bytes are the same. */
  alike(place: number): number {
    return this.#program.alike[place]!;
  }

  #step(state: ParseState, byte: number): ParseState | null {
    state.reads ??= this.#enter(state);
    const { places, frames } = state.reads;
    const { starts, targets, firsts, lasts } = this.#program;
    this.#agenda.clear();
    for (let read = 0; read < places.length; read++) {
      const end = starts[places[read]! + 1]!;
      const start = starts[places[read]!]!;
      this.spend(end - start);
      for (let at = start; at < end; at++) {
        if (byte < firsts[at]! || byte > lasts[at]!) continue;
        this.#agenda.add(targets[at]!, frames[read]!);
      }
    }
    const after = this.#settle();
    const found = after.ended || after.groups.length > 0 ? after : null;
    state.next[this.#classes[byte]!] = found;
    return found;
  }

  /** Follows splits and returns, up to where something is read. Rules called there are not entered. */
  #settle(): ParseState {
    const agenda = this.#agenda;
    const { ops: each, starts, targets, empty } = this.#program;
    const found = new Map<Frame, number[]>();
    let ended = false;
    while (agenda.take()) {
      const { place, frame } = agenda;
      const op = each[place];
      this.spend(placeSteps);
      if (op === ops.split) {
        this.#addTargets(place, frame);
      } else if (op === ops.return) {
        if (frame === this.outermost) ended = true;
        this.spend(frame.places.length);
        for (let at = 0; at < frame.places.length; at++) {
          agenda.add(frame.places[at]!, frame.frames[at]!);
        }
      } else {
        const some = found.get(frame);
        if (some) some.push(place);
        else found.set(frame, [place]);
        const at = starts[place]!;
        if (op === ops.call && empty[targets[at]!] === 1) agenda.add(targets[at + 1]!, frame);
      }
    }
    return this.#intern(found, ended);
  }

  /** Enters the rules that a state calls: each gets a frame. Whoever returns unread was let by before. */
  #enter(state: ParseState): Reads {
    const agenda = this.#agenda;
    const { ops: each, starts, targets, empty } = this.#program;
    const entered = new Map<number, Frame>();
    const reads: { places: number[]; frames: Frame[] } = { places: [], frames: [] };
    agenda.clear();
    for (const { frame, places } of state.groups) {
      for (const place of places) agenda.add(place, frame);
    }
    while (agenda.take()) {
      const { place, frame } = agenda;
      const op = each[place];
      this.spend(placeSteps);
      if (op === ops.split) {
        this.#addTargets(place, frame);
      } else if (op === ops.read) {
        reads.places.push(place);
        reads.frames.push(frame);
      } else if (op === ops.call) {
        const [entry, next] = [targets[starts[place]!]!, targets[starts[place]! + 1]!];
        const own = entered.get(entry) ?? new Frame(this.#frames++);
        entered.set(entry, own);
        own.places.push(next);
        own.frames.push(frame);
        agenda.add(entry, own);
        if (empty[entry] === 1) agenda.add(next, frame);
      }
    }
    return reads;
  }

  #addTargets(place: number, frame: Frame): void {
    const { starts, targets } = this.#program;
    const end = starts[place + 1]!;
    this.spend(end - starts[place]!);
    for (let at = starts[place]!; at < end; at++) this.#agenda.add(targets[at]!, frame);
  }

  #intern(found: ReadonlyMap<Frame, number[]>, ended: boolean): ParseState {
    const groups = Array.from(found, ([frame, places]): Group => {
      return { frame, places: places.sort((a, b) => a - b) };
    });
    groups.sort((a, b) => a.frame.id - b.frame.id);
    const key = groups.map(({ frame, places }) => `${frame.id}:${places}`).join(";") + ended;
    const known = this.#states.get(key);
    if (known) return known;
    this.spend(stateSteps * (1 + groups.length));
    const state = new ParseState(groups, ended);
    const items = groups.reduce((sum, { places }) => sum + places.length, this.#classCount);
    this.#items += items;
    if (this.#items > grammarStateItemsMax) {
      // Those in use live on. Others are made again where somebody comes to them.
      this.#states = new Map();
      this.#items = items;
      this.#start = null;
    }
    this.#states.set(key, state);
    return state;
  }
}
