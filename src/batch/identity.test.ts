import { expect, test } from "vitest";
import { type Demands, unmet } from "./identity.ts";

const worker = {
  ...{ name: "box-1", model: "nano", build: "1.2.3", device: "wasm; relaxed SIMD; f32" },
  ...{ weights: "0123456789abcdef", probe: "fedcba9876543210" },
};

test.each<Demands>([
  {},
  { build: "1.2.3" },
  { device: "wasm" },
  { device: "f32" },
  { weights: "0123" },
  { build: "1.2.3", device: "relaxed SIMD", weights: worker.weights },
])("a worker may serve what asks for %j", (demands) => {
  expect(unmet(demands, worker)).toBeNull();
});

test.each<[Demands, string]>([
  [{ build: "1.2.4" }, "build 1.2.4, and this worker has 1.2.3"],
  // A version isn't the beginning of another.
  [{ build: "1.2" }, "build 1.2, and this worker has 1.2.3"],
  [{ device: "webgpu" }, "device webgpu, and this worker has wasm; relaxed SIMD; f32"],
  [{ weights: "1234" }, "weights 1234, and this worker has 0123456789abcdef"],
  [{ weights: "01234", build: "2.0.0" }, "build 2.0.0, and this worker has 1.2.3"],
])("a worker leaves what asks for %j to others", (demands, difference) => {
  expect(unmet(demands, worker)).toBe(`it asks for ${difference}`);
});
