import { FakeBackend, type FakeOptions } from "../../backend/fake/fake.ts";
import { ReferenceBackend } from "../../backend/reference/reference.ts";
import type { Clock } from "../../clock.ts";
import { Bf16Codebooks } from "../../draft/lattice.ts";
import { tinyDrafterShape } from "../../model/drafter-shape.ts";
import { tinyShape } from "../../model/tiny-shape.ts";
import { bytesOf, narrowToBf16 } from "../../weights/floats.ts";
import { randomWeights } from "../../weights/random.ts";
import { randomDrafterWeights } from "../../weights/random-drafter.ts";
import { draftedOn } from "./drafted.ts";
import type { Opener } from "./faulty.cases.ts";
import { gateDrafters } from "./gate-drafters.ts";
import { type GateReport, GateRun } from "./gate-run.ts";
import { gateSamplings } from "./gate-samplings.ts";
import type { ReplySet } from "./gate-set.ts";
import { randomInts } from "./timeline.ts";

const shape = tinyShape();
const drafterShape = tinyDrafterShape(shape);
const { rank } = drafterShape.selector!;
const random = randomInts(5);
const ids = (count: number) => Array.from({ length: count }, () => random(shape.vocabSize));
const phrase = ids(9);
const table = () =>
  bytesOf(narrowToBf16(Float32Array.from(ids(rank * shape.vocabSize), (id) => id / 300 - 0.5)));

/** Two prompts, one of which ends before a page's edge and its reply behind it, and two ways to draw. */
export const tinySet: ReplySet = {
  weights: randomWeights(shape, { seed: 7, bits: 4, groupSize: 32 }),
  drafter: {
    options: { weights: randomDrafterWeights(drafterShape, { seed: 5, bits: 4, groupSize: 32 }) },
    codebooks: new Bf16Codebooks(rank, table(), table()),
  },
  eosIds: [3],
  prompts: [
    { name: "phrases", ids: [...phrase, ...phrase] },
    { name: "random", ids: ids(55) },
  ],
  samplings: [gateSamplings[0]!, gateSamplings[2]!],
  drafters: gateDrafters,
  tokensMax: 24,
};

export const reference: Opener = (options) => ReferenceBackend.open(options);

const fakeWith =
  (logits: NonNullable<FakeOptions["logits"]>): Opener =>
  async ({ weights, drafter, ...sizes }) =>
    new FakeBackend({ ...sizes, shape: weights.shape, drafter: drafter ?? null, logits });

/** Its replies have nothing to copy. */
export const hashes: Opener = fakeWith(() => {});

/** Its replies are of two tokens, nearly. */
export const fake: Opener = fakeWith((row, history) => {
  const token = history % 8 === 0 ? 6 : 5;
  row[token] = row[token]! + 40;
});

const noTime: Clock = { nowMs: () => 0, unixSeconds: () => 0 };

/** Every cell of a little grid. */
export async function runDrafted(open: Opener, set: ReplySet): Promise<GateReport> {
  const run = new GateRun(noTime, false, () => {});
  return run.report("drafted", await draftedOn(run, { open, full: false }, set));
}

/** Failed cells as "name: detail". */
export const failedOf = ({ cases }: GateReport): string[] =>
  cases.filter(({ ok }) => !ok).map(({ name, detail }) => `${name}: ${detail}`);
