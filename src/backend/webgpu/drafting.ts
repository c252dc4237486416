import { roundRowsMax } from "../../limits.ts";
import type { DrafterShape } from "../../model/drafter-shape.ts";
import type { Plan } from "../../model/plan.ts";
import { drafterRotation, type Rotation } from "../../model/rope.ts";
import { encodePass, type HistoryTurns } from "./pass.ts";
import { PassCommands } from "./pass-commands.ts";
import type { DrafterPlaces } from "./places.ts";
import { type PassCounts, type Program, plainCounts, smallestPass } from "./program.ts";
import { topOfPlan } from "./topk.ts";

/** Rows of which the commands of an extend are made at least. */
const extendRowsMin = 8;

/**
 * A drafter's passes. They read and write no conv history, and their attention is cut by each block
 * alone, so that only few counts tell their commands apart.
 */
export class Drafting {
  readonly #device: GPUDevice;
  readonly #places: DrafterPlaces;
  readonly #rotation: Rotation;
  readonly #rowsMax: number;
  readonly #turns: HistoryTurns;
  readonly #extends: PassCommands;
  readonly #drafts: PassCommands;
  /** Counts of the latest draft, which are likely to come again. */
  #latest: PassCounts | null = null;

  constructor(
    device: GPUDevice,
    places: DrafterPlaces,
    program: Program,
    { rope, headDim }: DrafterShape,
    { slots, rowsMax }: { readonly slots: number; readonly rowsMax: number },
  ) {
    this.#device = device;
    this.#places = places;
    this.#rotation = drafterRotation(rope, headDim);
    this.#rowsMax = rowsMax;
    this.#turns = new Uint8Array(slots);
    this.#extends = new PassCommands(program.extend, device);
    this.#drafts = new PassCommands(program.draft, device);
  }

  extend(plan: Plan): void {
    this.#write(this.#places.extend, plan);
    this.#extends.submit(this.#extendCounts(plan.ids.length, plan.segments.length));
  }

  draft(plan: Plan): void {
    const counts = {
      ...plainCounts(plan.ids.length, plan.draws.length, plan.segments.length),
      top: topOfPlan(plan),
    };
    this.#write(this.#places.draft, plan);
    this.#drafts.submit(counts);
    this.#latest = counts;
  }

  /** Where drafts are made, encodes what is likely to follow a round: an extend by some of its rows, and a draft. */
  prepare({ ids, segments }: Plan): void {
    if (!this.#latest) return;
    for (const rows of [segments.length, ids.length]) {
      this.#extends.prepare(this.#extendCounts(rows, segments.length));
    }
    this.#drafts.prepare(this.#latest);
  }

  #write(buffer: GPUBuffer, plan: Plan): void {
    const words = encodePass(plan, this.#rotation, this.#turns, smallestPass.attention);
    this.#device.queue.writeBuffer(buffer, 0, words);
  }

  /**
   * How many rows a round keeps is not known before it is over, so that small extends have commands for
   * a few more rows than they are; kernels leave those out.
   */
  #extendCounts(rows: number, segments: number): PassCounts {
    let room = extendRowsMin;
    while (room < rows) room *= 2;
    const most = rows > roundRowsMax ? rows : Math.min(room, this.#rowsMax);
    return plainCounts(most, 0, segments);
  }
}
