import type { GateDrafter } from "./gate-drafters.ts";
import type { GatePrompt } from "./gate-prompts.ts";
import { type GateSampling, needsFew } from "./gate-samplings.ts";

/** A reply that every drafter is to bring. */
export interface Task {
  readonly name: string;
  readonly prompt: GatePrompt;
  readonly sampling: GateSampling;
  /** Whether it goes on behind a token that would end it. */
  readonly pastEos: boolean;
  /**
   * Drawn as users' replies are, from as few candidates as the sampling needs: what selects them is in use,
   * and rows can't be compared.
   */
  readonly narrow: boolean;
}

export interface GridCell {
  readonly name: string;
  readonly task: Task;
  readonly drafter: GateDrafter;
  /** Its place in the whole grid's order: what is random in it comes from that. */
  readonly index: number;
}

/**
 * Every prompt × sampling × drafter, task by task, each with half of the drafters, because a sample ends
 * early: one task for each sampling, then one for each with the other half, and so on. What is then left of
 * each task comes last.
 */
export function gridTasks(
  prompts: readonly GatePrompt[],
  samplings: readonly GateSampling[],
  drafters: readonly GateDrafter[],
): GridCell[][] {
  const tasks = tasksOf(prompts, samplings);
  let index = 0;
  return [0, 1].flatMap((half) =>
    tasks.map((task, number) =>
      drafters
        .filter((_, at) => (at + number + cycleOf(number, samplings) + half) % 2 === 0)
        .map((drafter) => gridCell(task, drafter, index++)),
    ),
  );
}

/** How many tasks with each sampling there were before. */
const cycleOf = (number: number, samplings: readonly GateSampling[]): number =>
  Math.floor(number / samplings.length);

export function gridCell(task: Task, drafter: GateDrafter, index: number): GridCell {
  return { name: `${task.name}: ${drafter.name}`, task, drafter, index };
}

/** Each lap has every prompt once, and the next sampling for each. */
function tasksOf(prompts: readonly GatePrompt[], samplings: readonly GateSampling[]): Task[] {
  return samplings.flatMap((_, lap) =>
    prompts.map((prompt, at): Task => {
      const kind = (at + lap) % samplings.length;
      const sampling = samplings[kind]!;
      const pastEos = (at + lap + Math.floor(at / samplings.length)) % 3 === 2;
      // Every second sampling, for two cycles and so with every drafter; then those beside it.
      const turn = Math.floor(cycleOf(lap * prompts.length + at, samplings) / 2);
      const narrow = (kind + turn) % 2 === 0 && needsFew(sampling, prompt.ids);
      const how = `${pastEos ? ", past eos" : ""}${narrow ? ", narrow" : ""}`;
      return { name: `${prompt.name}, ${sampling.name}${how}`, prompt, sampling, pastEos, narrow };
    }),
  );
}

/**
 * Cells in few words, none left out: by prompt, its samplings and drafters; prompts of which the same
 * cells are left share a line.
 * @param all the grid that they are of
 */
export function describeCells(cells: readonly GridCell[], all: readonly GridCell[]): string[] {
  const whole = Map.groupBy(all, ({ task }) => task.prompt.name);
  const lines = new Map<string, string[]>();
  for (const [prompt, left] of Map.groupBy(cells, ({ task }) => task.prompt.name)) {
    const text = leftOf(left, whole.get(prompt)!);
    lines.set(text, [...(lines.get(text) ?? []), prompt]);
  }
  return [...lines].map(([text, prompts]) => `${prompts.join(", ")}: ${text}`);
}

/** What is left of one prompt's cells. */
function leftOf(cells: readonly GridCell[], all: readonly GridCell[]): string {
  if (cells.length === all.length) return `all ${all.length} cells`;
  const named = (names: readonly string[], of: (cell: GridCell) => string) =>
    names.length === new Set(all.map(of)).size ? "all" : names.toSorted().join(", ");
  const samplings = Map.groupBy(cells, ({ task }) => task.sampling.name);
  const alike = Map.groupBy(samplings, ([, left]) => {
    return named(
      left.map(({ drafter }) => drafter.name),
      ({ drafter }) => drafter.name,
    );
  });
  const parts = [...alike].map(([drafters, left]) => {
    const names = left.map(([sampling]) => sampling);
    return `(${named(names, ({ task }) => task.sampling.name)}) × (${drafters})`;
  });
  return `${cells.length} of ${all.length} cells: ${parts.toSorted().join("; ")}`;
}
