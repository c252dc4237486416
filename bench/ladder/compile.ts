/**
 * Compiles every rung on Dawn's null backend, which has the matrix unit's types and no GPU. Modules only: its
 * subgroups are of 128, so that it takes no pipeline of them.
 */
import { createRequire } from "node:module";
import { matrixFeature } from "../../src/backend/webgpu/device.ts";
import { fillText } from "./kernels.ts";
import { matrixNames, perSlice, rungs } from "./rungs.ts";

const { create } = createRequire(import.meta.url)("webgpu") as { create(options: string[]): GPU };
// Held to the end: Dawn crashes where it is collected before its devices.
const gpu = create(["backend=null", "enable-dawn-features=allow_unsafe_apis"]);
const adapter = (await gpu.requestAdapter())!;
const device = await adapter.requestDevice({
  requiredFeatures: ["shader-f16", "subgroups", matrixFeature],
});

const texts = new Map([[fillText, "fill"]]);
for (const { label, parts } of rungs) {
  for (const name of matrixNames) {
    const part = parts[name];
    texts.set(part.kernel.text(perSlice(name, part)), `${label}: ${name}`);
  }
}
let failed = 0;
for (const [code, label] of texts) {
  device.pushErrorScope("validation");
  device.createShaderModule({ code });
  const error = await device.popErrorScope();
  if (error) console.log(`${label}\n${error.message}`);
  failed += Number(error !== null);
}
console.log(`${texts.size - failed} of ${texts.size} kernels compile`);
process.exit(failed > 0 ? 1 : 0);
