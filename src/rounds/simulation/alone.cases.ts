import type { Candidates } from "../../backend/candidates.ts";
import { FakeBackend } from "../../backend/fake/fake.ts";
import { DeltafoldError } from "../../errors.ts";
import { pageId, slotId, type TokenId } from "../../ids.ts";
import { planPass, type SegmentRequest } from "../../model/plan.ts";
import { Sampler } from "../../sampling/sampler.ts";
import { contextFingerprint, stateFingerprint } from "../../state/fingerprint.ts";
import { pagesFor } from "../../state/kv-pages.ts";
import type { RoundOutcome, RoundRequest } from "../live-stream.ts";
import { type DeviceOptions, fakeOptions } from "./device-options.cases.ts";

/** What a request gets where nobody else is there, nothing is drafted or cached, and nothing fails. */
export interface Alone {
  readonly ids: readonly TokenId[];
  readonly reason: RoundOutcome["reason"];
  readonly stateSha: string | null;
  readonly contextSha: string | null;
}

/**
 * Computes it a row a pass, with nothing of the rounds.
 * @param stopAt tokens after which its listener ends the reply
 */
export async function alone(
  request: RoundRequest,
  stopAt: number,
  options: Pick<DeviceOptions, "drafts" | "brokenOnceIn">,
): Promise<Alone> {
  const { promptIds, maxTokens, eosIds, fingerprint } = request;
  const sampler = new Sampler(request.sampling, promptIds);
  const device = new Feeder(request, sampler.candidatesNeeded, options);
  const ids: TokenId[] = [];
  let reason: RoundOutcome["reason"] = "length";
  let draw = await device.feed(promptIds);
  while (ids.length < maxTokens) {
    if (!draw || draw instanceof DeltafoldError) {
      return { ids, reason: "error", stateSha: null, contextSha: null };
    }
    const id = sampler.draw(draw, promptIds.length + ids.length);
    ids.push(id);
    sampler.commit(id);
    if (ids.length === stopAt || eosIds.has(id)) reason = "stop";
    if (reason === "stop" || ids.length === maxTokens) break;
    draw = await device.feed([id]);
  }
  const prints = fingerprint ? await device.prints() : { stateSha: null, contextSha: null };
  return { ids, reason, ...prints };
}

/** One slot of one device, fed as it comes. */
class Feeder {
  readonly #device: FakeBackend;
  readonly #segment: Omit<SegmentRequest, "ids" | "start">;
  #rows = 0;

  constructor(
    { promptIds, maxTokens, fingerprint }: RoundRequest,
    candidates: number,
    options: Pick<DeviceOptions, "drafts" | "brokenOnceIn">,
  ) {
    const tokens = promptIds.length + maxTokens;
    const pages = pagesFor(tokens);
    // A whole prompt fits one pass, and the features of all rows wait for their drafter.
    this.#device = new FakeBackend({
      ...fakeOptions({ slots: 1, pages, ...options }),
      rowsMax: tokens,
    });
    this.#device.open(slotId(0));
    this.#segment = {
      stateSlot: slotId(0),
      nextSlot: slotId(0),
      pages: Array.from({ length: pages }, (_, index) => pageId(index)),
      draw: maxTokens > 0 ? "last" : "none",
      candidates,
      keepLogits: fingerprint,
    };
  }

  /** @returns what the next token is drawn from; null where none is */
  async feed(ids: readonly TokenId[]): Promise<Candidates | DeltafoldError | null> {
    const plan = planPass([{ ...this.#segment, ids, start: this.#rows }]);
    this.#rows += ids.length;
    const { draws } = await this.#device.read(this.#device.prefill(plan));
    return draws[0] ?? null;
  }

  async prints(): Promise<{ stateSha: string; contextSha: string }> {
    const device = this.#device;
    const ids = new Array<TokenId>(this.#rows).fill(0);
    if (device.info.drafter) {
      device.extend(planPass([{ ...this.#segment, ids, start: 0, draw: "none" }]));
    }
    const snapshot = await device.save(slotId(0), this.#segment.pages, this.#rows);
    return { stateSha: stateFingerprint(snapshot), contextSha: contextFingerprint(snapshot) };
  }
}
