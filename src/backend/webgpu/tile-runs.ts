import type { Step } from "../../model/forward.ts";
import type { StepTensors } from "../../weights/tensors.ts";
import { partAt } from "./projection-layout.ts";
import type { InputName, RowArray, RowArrays } from "./row-arrays.ts";
import { sameForm, type TileMember } from "./tiles.ts";

export type Project = Step & { readonly op: "project" };

/** What a projection reads: an MLP's product has a buffer of its own here. */
export function inputOf({ input }: Project): InputName {
  if (input === "gate") return "activated";
  return input === "draftGate" ? "draftActivated" : (input as InputName);
}

/** Where f16 projections leave what the next norm adds, or a drafter's sublayer made; else null. */
export function updateOf(step: Project, { updates }: RowArrays): RowArray | null {
  const { accumulate, out } = step.projections[0]!;
  return accumulate || out === "draftOut" ? updates.get(inputOf(step))! : null;
}

/** A step's matrices in runs that lie in one (f16), by their outputs' places. */
export function tileRuns(step: Project, tensors: StepTensors, arrays: RowArrays): TileMember[][] {
  const update = updateOf(step, arrays);
  const members = step.projections.map(({ matrix: path, out, outAt = 0 }) => {
    const matrix = tensors.matrix(path);
    const at = update ? 0 : arrays.rows.get(out)!.offset + partAt(outAt, matrix.rows);
    return { matrix, at };
  });
  members.sort((a, b) => a.at - b.at);
  const runs: TileMember[][] = [];
  for (const member of members) {
    const run = runs.at(-1);
    if (run && sameForm(run[0]!.matrix, member.matrix)) run.push(member);
    else runs.push([member]);
  }
  return runs;
}
