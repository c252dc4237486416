import type { Drafting } from "../../draft/drafting.ts";
import type { TokenId } from "../../ids.ts";
import { type GateDrafter, noDrafter } from "./gate-drafters.ts";
import type { GateModel } from "./gate-drafting.ts";
import type { Asked, Served } from "./gate-loop.ts";
import type { GatePrompt } from "./gate-prompts.ts";
import { type GateSampling, needsFew, samplingOf } from "./gate-samplings.ts";
import type { SerialReplies } from "./serial-replies.ts";
import type { Guest } from "./streams-company.ts";
import type { StreamsCell } from "./streams-grid.ts";
import { type Leave, wholeReply } from "./streams-leaves.ts";
import type { StreamPrompt } from "./streams-prompts.ts";
import { longReplyTokens } from "./streams-settings.ts";
import { randomInts } from "./timeline.ts";

const seed = 20261204;

/** What the streams of all cells are made of. */
export interface GuestSetting {
  readonly serial: SerialReplies;
  readonly prompts: readonly GatePrompt[];
  /** The first is greedy. */
  readonly samplings: readonly GateSampling[];
  /** What streams draft with that do. */
  readonly drafters: readonly GateDrafter[];
  /** The drafter that blocks come from; null: none. */
  readonly model: GateModel | null;
  readonly vocabSize: number;
  readonly eosIds: readonly TokenId[];
  /** Of a reply, where it isn't a long one. */
  readonly tokensMax: number;
}

/** A stream, and what it has to be. */
export interface KnownGuest extends Guest {
  readonly name: string;
  readonly expected: Served;
}

/** How a stream's tokens are drawn. */
interface Drawing {
  readonly sampling: GateSampling;
  readonly pastEos: boolean;
  readonly wide: boolean;
}

/** Makes the streams of cells. */
export class Guests {
  readonly #setting: GuestSetting;

  constructor(setting: GuestSetting) {
    this.#setting = setting;
  }

  /** A cell's streams, the first to come first. */
  async of(cell: StreamsCell): Promise<KnownGuest[]> {
    const { prompts, tokensMax } = this.#setting;
    const { streams, turn, setting, join } = cell;
    const reply = async (prompt: GatePrompt) => {
      const [name, asked] = this.#ask(prompt, this.#greedy, wholeReply(tokensMax));
      return (await this.#setting.serial.of(name, asked)).ids;
    };
    const cast = { streams, turn, prompts, amid: join.amid, reply };
    const guests: KnownGuest[] = [];
    for (const [at, prompt] of (await setting.prompts(cast)).entries()) {
      guests.push(await this.#guest(cell, at, prompt));
    }
    return guests;
  }

  async #guest(cell: StreamsCell, at: number, prompt: StreamPrompt): Promise<KnownGuest> {
    const { setting, turn, leave, join } = cell;
    const opens = setting.opener && at === 0;
    const tokens = setting.long ? longReplyTokens : this.#setting.tokensMax;
    const leaves = opens ? wholeReply(tokens) : leave.leave(at, turn, tokens);
    const drawing = opens ? this.#greedy : this.#drawing(cell, at, prompt);
    const [name, alone] = this.#ask(prompt, drawing, leaves);
    const expected = await this.#setting.serial.of(name, alone);
    const { marks, priority } = prompt;
    const schedule = { ...(marks && { marks }), ...(priority && { priority }) };
    const asked = { ...alone, ...schedule, wide: drawing.wide };
    const drafter = this.#drafterOf(cell, at);
    return {
      name: `${name}, ${drafter.name}`,
      expected,
      turn: [asked, this.#draftingOf(drafter, alone, expected, 8 * turn + at)],
      cancelAt: leaves.cancelAt,
      joins: (seen) => (!setting.opener || seen.ended[0] === true) && join.joins(at, seen),
    };
  }

  get #greedy(): Drawing {
    return { sampling: this.#setting.samplings[0]!, pastEos: true, wide: true };
  }

  #drawing({ turn, setting }: StreamsCell, at: number, prompt: GatePrompt): Drawing {
    const { samplings } = this.#setting;
    const sampling = samplings[(turn + 3 * at) % samplings.length]!;
    return {
      sampling,
      pastEos: setting.long || (turn + at) % 3 === 2,
      wide: (turn + at) % 2 === 0 || !needsFew(sampling, prompt.ids),
    };
  }

  /** A name that says all of it, and the request, wide and of no concern to the cache. */
  #ask(
    { name, ids: promptIds }: GatePrompt,
    { sampling, pastEos }: Drawing,
    { maxTokens, stopAfter }: Leave,
  ): [name: string, asked: Asked] {
    const end = stopAfter === null ? "" : `, stop at ${stopAfter}`;
    const how = `${pastEos ? ", past eos" : ""}, ${maxTokens} tokens${end}`;
    return [
      `${name}, ${sampling.name}${how}`,
      {
        promptIds,
        maxTokens,
        sampling: samplingOf(sampling, promptIds),
        eosIds: new Set(pastEos ? [] : this.#setting.eosIds),
        stopAfter,
        wide: true,
      },
    ];
  }

  #drafterOf({ mix, turn }: StreamsCell, at: number): GateDrafter {
    const { drafters } = this.#setting;
    const plain = mix === "plain" || (mix === "drafted and plain" && (at + turn) % 2 === 0);
    return plain ? noDrafter : drafters[(Math.floor(turn / 3) + at) % drafters.length]!;
  }

  #draftingOf(
    drafter: GateDrafter,
    { promptIds, sampling }: Asked,
    expected: Served,
    number: number,
  ): Drafting | null {
    const { model, vocabSize } = this.#setting;
    const truth = { ids: [...promptIds, ...expected.ids], vocabSize };
    return drafter.drafting({ truth, sampling, random: randomInts(seed + number), model });
  }
}
