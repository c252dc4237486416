import type { CellResult } from "./gate-run.ts";
import { type CacheClaim, wrongClaim } from "./resume-claim.ts";
import type { ResumeCoverage } from "./resume-coverage.ts";
import type { ResumeEngine } from "./resume-engine.ts";
import { differsAt } from "./resume-known.ts";
import type { ResumeAct, ResumeStep } from "./resume-script.ts";
import { type Served, type ServedReply, serveTogether } from "./resume-serve.ts";

/** How acts are played. */
export interface PlayOptions {
  readonly claim: CacheClaim;
  /** Whether a turn waits for what is computed and written after the one before. */
  readonly settles: boolean;
  /** Whether streams draft; null: as the script says. */
  readonly draft: boolean | null;
}

/** Serves acts in one engine, and compares each step with what it is where nothing is cached. */
export class ResumePlayer {
  readonly #opened: ResumeEngine;
  readonly #acts: readonly ResumeAct[];
  readonly #options: PlayOptions;
  readonly #coverage: ResumeCoverage;
  /** What began with the end of the act before it. */
  readonly #begun = new Map<ResumeAct, Promise<Served>>();

  /** @param acts in their order: where turns don't wait, each begins with the end of the one before */
  constructor(
    opened: ResumeEngine,
    acts: readonly ResumeAct[],
    options: PlayOptions,
    coverage: ResumeCoverage,
  ) {
    this.#opened = opened;
    this.#acts = acts;
    this.#options = options;
    this.#coverage = coverage;
  }

  #claimOf({ goesBack }: ResumeAct): CacheClaim {
    const { claim } = this.#options;
    return goesBack && claim === "nearly" ? "atMost" : claim;
  }

  /** @param claim another one than the player's, for this act alone */
  async play(act: ResumeAct, claim: CacheClaim = this.#claimOf(act)): Promise<CellResult> {
    const { engine, watch, warnings } = this.#opened;
    const { settles } = this.#options;
    if (settles) await engine.settled();
    const { restores } = watch;
    const served = await (this.#begun.get(act) ?? this.#begin(act));
    const differences = act.steps.flatMap((step, at) => {
      const reply = served.replies[at]!;
      this.#coverage.addReply(reply);
      const wrong = wrongClaim(claim, step, reply.cachedTokens);
      return [...this.#differences(step, reply), ...(wrong === null ? [] : [wrong])];
    });
    this.#coverage.addRestores(watch.restores - restores);
    const { prompt, cached } = tokensOf(served);
    if (settles && prompt - cached !== served.computed) {
      differences.push(`${served.computed} rows were computed for ${prompt - cached} tokens`);
    }
    const { bytes } = engine.cached;
    const { promptCacheBytes } = engine.info;
    if (bytes > promptCacheBytes) differences.push(`${bytes} of ${promptCacheBytes} bytes cached`);
    const found = [...differences, ...warnings];
    return {
      ok: found.length === 0,
      detail: found.join("; ") || `${cached} of ${prompt} tokens cached, all else equal`,
      counts: { prompt, cached, computed: served.computed },
    };
  }

  #begin(act: ResumeAct): Promise<Served> {
    const next = this.#options.settles ? null : this.#acts[this.#acts.indexOf(act) + 1];
    const asked = act.steps.map((step) => this.#asked(step));
    return serveTogether(this.#opened, asked, () => {
      if (!next) return;
      const begun = this.#begin(next);
      this.#begun.set(next, begun);
      // Whoever plays it hears of its failure.
      begun.catch(() => {});
    });
  }

  #asked({ request }: ResumeStep): ResumeStep["request"] {
    const { draft } = this.#options;
    return draft === null ? request : { ...request, draft };
  }

  #differences(step: ResumeStep, reply: ServedReply): string[] {
    const { promptIds, reply: expected } = step;
    const found: string[] = [];
    const add = (wrong: boolean, what: string) => {
      if (wrong) found.push(what);
    };
    const { promptTokens, ids } = reply;
    add(
      promptTokens !== promptIds.length,
      `${promptTokens} prompt tokens, not ${promptIds.length}`,
    );
    const at = differsAt(expected.ids, ids);
    add(at >= 0, `token ${at} is ${ids[at]}, not ${expected.ids[at]}`);
    add(reply.stateSha !== expected.stateSha, "the state differs");
    const drafted = this.#asked(step).draft !== false;
    add(drafted && reply.context !== expected.context, "the drafter's context differs");
    return found;
  }
}

function tokensOf({ replies }: Served): { readonly prompt: number; readonly cached: number } {
  const sum = { prompt: 0, cached: 0 };
  for (const { promptTokens, cachedTokens } of replies) {
    sum.prompt += promptTokens;
    sum.cached += cachedTokens;
  }
  return sum;
}
