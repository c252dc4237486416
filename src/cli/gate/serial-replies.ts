import { type Asked, type GateLoop, type Served, silentDrafting } from "./gate-loop.ts";

/** Replies a row a round, and wide; each is made once, because many others are held against it. */
export class SerialReplies {
  readonly #loop: GateLoop;
  readonly #served = new Map<string, Served>();

  constructor(loop: GateLoop) {
    this.#loop = loop;
  }

  /** @param name of what is asked for, and of nothing else */
  async of(name: string, asked: Asked): Promise<Served> {
    const known = this.#served.get(name);
    if (known) return known;
    const served = await this.#loop.serve(asked, silentDrafting);
    this.#served.set(name, served);
    return served;
  }
}
