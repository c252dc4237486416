import { FakeBackend } from "../../backend/fake/fake.ts";
import type { Clock } from "../../clock.ts";
import { embeddedModel, openBackend } from "../../node.ts";
import type { Opener } from "./faulty.cases.ts";
import { type GateReport, GateRun } from "./gate-run.ts";
import type { GateOptions } from "./options.ts";
import { resumeOn } from "./resume.ts";
import type { StorySize } from "./resume-story.ts";

export const choice = { backend: "wasm", threads: 2 } as const;

export const wasm: Opener = (options) => openBackend(options, choice);

/** Of nano's shape, so that its prompts are nano's. */
export const fake: Opener = async ({ weights, drafter, ...sizes }) =>
  new FakeBackend({ ...sizes, shape: weights.shape, drafter: drafter ?? null });

export const shortStory: StorySize = { turns: 2, long: false };

const noTime: Clock = { nowMs: () => 0, unixSeconds: () => 0 };

/** The whole sample, however long it takes. */
export async function runResume(
  options: Pick<GateOptions, "open" | "choice">,
  size: StorySize = shortStory,
  full = false,
): Promise<GateReport> {
  const run = new GateRun(noTime, full, () => {});
  const device = await resumeOn(run, { model: embeddedModel, full, ...options }, size);
  return run.report("resume", device);
}

/** Failed cells as "name: detail". */
export const failedOf = ({ cases }: GateReport): string[] =>
  cases.filter(({ ok }) => !ok).map(({ name, detail }) => `${name}: ${detail}`);
