import type { PassHandle, PassResult } from "../../src/backend/backend.ts";
import type { Candidates } from "../../src/backend/candidates.ts";
import { FakeBackend, type FakeOptions } from "../../src/backend/fake/fake.ts";
import { nextTask } from "../../src/clock.ts";
import type { TokenId } from "../../src/ids.ts";
import { drawPosition, type Plan } from "../../src/model/plan.ts";

/** A fake whose streams say one text over and over, at next to no cost: a token by its position. */
export class ScriptedBackend extends FakeBackend {
  readonly #draws: readonly Candidates[];
  readonly #plans = new Map<PassHandle, Plan>();
  #passes = 0;

  constructor(options: FakeOptions, text: readonly TokenId[]) {
    super(options);
    this.#draws = text.map((id) => ({ ids: Int32Array.of(id), logits: Float32Array.of(1) }));
  }

  override verify(plan: Plan): PassHandle {
    this.#passes++;
    const handle = this.#passes as PassHandle;
    this.#plans.set(handle, plan);
    return handle;
  }

  /** Sockets have their turn, as they do while others compute. */
  override async read(handle: PassHandle): Promise<PassResult> {
    await nextTask();
    const plan = this.#plans.get(handle)!;
    this.#plans.delete(handle);
    const at = (row: number) => drawPosition(plan, row) % this.#draws.length;
    const draws = plan.draws.map(({ row }) => this.#draws[at(row)]!);
    return { draws, taps: [], selector: null };
  }
}
