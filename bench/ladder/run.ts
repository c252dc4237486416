/**
 * Times the rungs on a GPU with a matrix unit: the four projections of a layer in turn, and each alone.
 *
 *   node bench/ladder/run.ts [PART OF A LABEL]
 */

import { hasMatrixUnit, matrixFeature, requestAdapter } from "../../src/backend/webgpu/device.ts";
import { nodeGpuPlatform } from "../../src/backend/webgpu/platform-node.ts";
import { spread } from "../../src/cli/bench/spread.ts";
import { systemClock } from "../../src/clock.ts";
import { LadderBuffers, uniformOf } from "./buffers.ts";
import { type MatrixName, matrices, matrixNames, perSlice, type Rung, rungs } from "./rungs.ts";

/** So long that Dawn's rounding of time stamps (0.1 ms) is below half a percent. */
const sampleMs = 25;
const samples = 7;
/** A GPU that was idle takes its time to clock up. */
const warmUpMs = 800;

interface Dispatch {
  readonly pipeline: GPUComputePipeline;
  /** One for each copy of the matrix. */
  readonly bindGroups: readonly GPUBindGroup[];
  readonly size: readonly [x: number, y: number, z: number];
}

const adapter = await requestAdapter(nodeGpuPlatform, null);
if (!hasMatrixUnit(adapter) || !adapter.features.has("timestamp-query")) {
  console.error(`${adapter.info.description} has no matrix unit or no time stamps.`);
  process.exit(1);
}
const { limits } = adapter;
const device = await adapter.requestDevice({
  requiredFeatures: ["shader-f16", "subgroups", "timestamp-query", matrixFeature],
  requiredLimits: {
    maxBufferSize: limits.maxBufferSize,
    maxStorageBufferBindingSize: limits.maxStorageBufferBindingSize,
    maxComputeWorkgroupStorageSize: limits.maxComputeWorkgroupStorageSize,
    maxComputeInvocationsPerWorkgroup: limits.maxComputeInvocationsPerWorkgroup,
    maxComputeWorkgroupSizeX: limits.maxComputeWorkgroupSizeX,
  },
});
// A refused dispatch would look like a very fast one.
let refused: string | null = null;
device.addEventListener("uncapturederror", (event) => {
  event.preventDefault();
  refused ??= event.error.message;
});

const buffers = new LadderBuffers(device);
const stamps = device.createQuerySet({ type: "timestamp", count: 2 });
const resolved = device.createBuffer({
  size: 16,
  usage: GPUBufferUsage.QUERY_RESOLVE | GPUBufferUsage.COPY_SRC,
});
const readable = device.createBuffer({
  size: 16,
  usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST,
});

async function prepare({ parts }: Rung, name: MatrixName): Promise<Dispatch> {
  const part = parts[name];
  const { kernel } = part;
  const { outputs, inputs } = matrices[name];
  const per = perSlice(name, part);
  const module = device.createShaderModule({ code: kernel.text(per) });
  const pipeline = await device.createComputePipelineAsync({ layout: "auto", compute: { module } });
  // One tile of 8 rows, whichever kernel.
  const params = uniformOf(device, [inputs / 64, per, outputs, 8 * outputs]);
  const layout = pipeline.getBindGroupLayout(0);
  const bindGroups = buffers.copies[name].map(({ codes, scales }) => {
    const bound = [params, buffers.input, codes, kernel.interleaved ? codes : scales];
    bound.push(buffers.output);
    if (kernel.digits) bound.push(buffers.digitScales);
    const entries = bound.map((buffer, binding) => ({ binding, resource: { buffer } }));
    return device.createBindGroup({ layout, entries });
  });
  const tiles = outputs / kernel.columns;
  const slices = part.slices / kernel.together;
  return {
    pipeline,
    bindGroups,
    size: kernel.slicesFirst ? [slices, 1, tiles] : [tiles, 1, slices],
  };
}

/** µs of one turn of the dispatches, of `turns` that follow each other. */
async function time(dispatches: readonly Dispatch[], turns: number): Promise<number> {
  const encoder = device.createCommandEncoder();
  const pass = encoder.beginComputePass({
    timestampWrites: { querySet: stamps, beginningOfPassWriteIndex: 0, endOfPassWriteIndex: 1 },
  });
  for (let turn = 0; turn < turns; turn++) {
    for (const { pipeline, bindGroups, size } of dispatches) {
      pass.setPipeline(pipeline);
      // Another copy each time, so that no cache still holds it.
      pass.setBindGroup(0, bindGroups[turn % bindGroups.length]!);
      pass.dispatchWorkgroups(...size);
    }
  }
  pass.end();
  encoder.resolveQuerySet(stamps, 0, 2, resolved, 0);
  encoder.copyBufferToBuffer(resolved, 0, readable, 0, 16);
  device.queue.submit([encoder.finish()]);
  await readable.mapAsync(GPUMapMode.READ);
  if (refused !== null) throw new Error(refused);
  const [from, to] = new BigUint64Array(readable.getMappedRange());
  const ns = Number(to! - from!);
  readable.unmap();
  return ns / 1000 / turns;
}

async function sample(dispatches: readonly Dispatch[], into: number[]): Promise<void> {
  const once = Math.max(1, into[0] ?? (await time(dispatches, 64)));
  into.push(await time(dispatches, Math.ceil((1000 * sampleMs) / once)));
}

const wanted = process.argv[2] ?? "";
const ready = [];
for (const rung of rungs.filter(({ label }) => label.includes(wanted))) {
  const layer = await Promise.all(matrixNames.map((name) => prepare(rung, name)));
  // The layer in turn, then each of its matrices alone.
  const series = [layer, ...layer.map((dispatch) => [dispatch])];
  ready.push({ label: rung.label, series, us: series.map((): number[] => []) });
}
const [first] = ready;
if (!first) throw new RangeError(`No rung has ${JSON.stringify(wanted)} in its label.`);

const start = systemClock.nowMs();
while (systemClock.nowMs() - start < warmUpMs) await time(first.series[0]!, 64);
// In turns, so that whatever changes meanwhile meets every rung.
for (let round = 0; round < samples; round++) {
  for (const { series, us } of ready) {
    for (const [index, dispatches] of series.entries()) await sample(dispatches, us[index]!);
  }
}

console.log(`${adapter.info.description}, µs: median (least … most)`);
for (const { label, us } of ready) {
  const [layer, ...alone] = us.map(spread);
  const { median, min, max } = layer!;
  const each = alone.map((one, index) => `${matrixNames[index]} ${one.median.toFixed(1)}`);
  const range = `(${min.toFixed(1)} … ${max.toFixed(1)})`;
  console.log(`${label.padEnd(32)} a layer ${median.toFixed(1)} ${range}, ${each.join(", ")}`);
}
process.exit(0);
