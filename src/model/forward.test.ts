import { expect, test } from "vitest";
import { forwardSteps } from "./forward.ts";
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
