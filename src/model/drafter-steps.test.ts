import { expect, test } from "vitest";
import { tinyDrafterShape } from "./drafter-shape.ts";
import { blockSteps, contextSteps } from "./drafter-steps.ts";
import type { Step } from "./forward.ts";
import { tinyShape } from "./tiny-shape.ts";

const shape = tinyDrafterShape(tinyShape());
const v1 = { ...shape, convolution: null, selector: null };
const ops = (steps: readonly Step[]) => steps.map(({ op }) => op);

test("a block's steps follow the layers", () => {
  const plain = ["norm", "project", "draftRope", "draftAttend", "project"];
  const plainMlp = ["norm", "project", "swiglu", "project"];
  const head = ["norm", "project"];
  const layers = shape.layers.flatMap(() => [...plain, ...plainMlp]);
  expect(ops(blockSteps(v1, 300))).toEqual(["embed", ...layers, ...head]);
  const conv = ["project", "dynamicConv"];
  const convolved = shape.layers.flatMap(() => [
    ...["norm", ...conv, "project", "draftRope", "draftAttend", ...conv],
    ...["norm", ...conv, "project", "swiglu", ...conv],
  ]);
  expect(ops(blockSteps(shape, 300))).toEqual(["embed", ...convolved, ...head, "project"]);
});

test("the head proposes as many tokens as asked for, of the rows that draw", () => {
  const heads = blockSteps(v1, 201).slice(-2);
  expect(heads[0]).toMatchObject({ weight: "draft.norm", out: "normedDraw", rows: "draws" });
  expect(heads[1]).toMatchObject({
    projections: [{ matrix: "lm_head", rows: 201 }],
    rows: "draws",
  });
});

test("every layer's keys and values of the context lie side by side", () => {
  const steps = contextSteps(shape);
  expect(ops(steps)).toEqual(["gather", "project", "norm", "project", "contextRope"]);
  const { projections } = steps[3] as Step & { op: "project" };
  expect(projections.map(({ matrix, out, outAt }) => [matrix, out, outAt])).toEqual(
    [0, 1, 2].flatMap((layer) => [
      [`draft.layers.${layer}.self_attn.k_proj`, "contextKeys", 64 * layer],
      [`draft.layers.${layer}.self_attn.v_proj`, "contextValues", 64 * layer],
    ]),
  );
});
