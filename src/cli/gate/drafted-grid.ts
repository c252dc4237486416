import type { GateDrafter } from "./drafted-drafters.ts";
import type { GatePrompt } from "./drafted-prompts.ts";
import type { GateSampling } from "./drafted-samplings.ts";

/** A reply that every drafter is to bring. */
export interface Task {
  readonly name: string;
  readonly prompt: GatePrompt;
  readonly sampling: GateSampling;
  /** Whether it goes on behind a token that would end it. */
  readonly pastEos: boolean;
}

export interface GridCell {
  readonly name: string;
  readonly task: Task;
  readonly drafter: GateDrafter;
  /** Its place in the whole grid's order: what is random in it comes from that. */
  readonly index: number;
}

/**
 * Every prompt × sampling × drafter, task by task. The first few tasks meet every sampling and half of the
 * drafters each, by turns, because a sample ends early; the other halves come last.
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
        .filter((_, at) => (at + number + half) % 2 === 0)
        .map((drafter) => gridCell(task, drafter, index++)),
    ),
  );
}

export function gridCell(task: Task, drafter: GateDrafter, index: number): GridCell {
  return { name: `${task.name}: ${drafter.name}`, task, drafter, index };
}

/** Each lap has every prompt once, and the next sampling for each. */
function tasksOf(prompts: readonly GatePrompt[], samplings: readonly GateSampling[]): Task[] {
  return samplings.flatMap((_, lap) =>
    prompts.map((prompt, at): Task => {
      const sampling = samplings[(at + lap) % samplings.length]!;
      const pastEos = (at + lap + Math.floor(at / samplings.length)) % 3 === 2;
      const name = `${prompt.name}, ${sampling.name}${pastEos ? ", past eos" : ""}`;
      return { name, prompt, sampling, pastEos };
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
