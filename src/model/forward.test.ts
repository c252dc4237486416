import { expect, test } from "vitest";
import { tinyDrafterShape } from "./drafter-shape.ts";
import { bufferWidths, forwardSteps } from "./forward.ts";
import { tinyShape } from "./tiny-shape.ts";

const ops = (taps: readonly number[]) => forwardSteps(tinyShape(), taps).map((step) => step.op);

test("the steps follow the layers", () => {
  const mlp = ["norm", "project", "swiglu", "project"];
  const linear = ["norm", "project", "conv", "scan", "gatedNorm", "project", ...mlp];
  const full = ["norm", "project", "rope", "attend", "project", ...mlp];
  const layers = [...linear, ...linear, ...full, ...linear];
  expect(ops([])).toEqual(["embed", ...layers, "norm", "project"]);
});

test("taps stand behind the embedding and the layers they name", () => {
  const steps = ops([0, 2, 4]);
  expect(steps.filter((op) => op === "tap")).toHaveLength(3);
  expect(steps[1]).toBe("tap");
  expect(steps.at(-3)).toBe("tap");
});

test("features stand behind the layers they name, by their place among them", () => {
  const steps = forwardSteps(tinyShape(), [1], [2, 0]);
  const kept = steps.flatMap((step, at) => (step.op === "feature" ? [[at, step.index]] : []));
  // Behind the embedding 10 steps a linear layer, 9 a full one; the tap is the step before.
  expect(kept).toEqual([
    [12, 1],
    [32, 0],
  ]);
  expect(steps[11]).toMatchObject({ op: "tap", tap: 1 });
});

test("row buffers are the model's own, and the drafter's where there is one", () => {
  const shape = tinyShape();
  const plain = bufferWidths(shape, null);
  expect([plain.size, plain.get("logits"), plain.get("queryGate")]).toEqual([19, 300, 256]);
  const drafter = tinyDrafterShape(shape);
  const widths = bufferWidths(shape, drafter);
  expect(Object.fromEntries([...widths].slice(19))).toEqual({
    features: 2 * 128,
    fused: 128,
    context: 128,
    contextKeys: 3 * 64,
    contextValues: 3 * 64,
    draftKernel: 2 * 2 * 8,
    draftMixed: 128,
    draftQuery: 128,
    draftKey: 64,
    draftValue: 64,
    draftRotated: 128,
    draftAttended: 128,
    draftOut: 128,
    draftGate: 160,
    draftUp: 160,
    selector: 32,
  });
  const v1 = bufferWidths(shape, { ...drafter, convolution: null, selector: null });
  const absent = [...widths.keys()].filter((name) => !v1.has(name));
  expect(absent).toEqual(["draftKernel", "draftMixed", "draftOut", "selector"]);
});
