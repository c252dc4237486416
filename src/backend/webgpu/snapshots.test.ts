import { expect, test } from "vitest";
import { tinyDrafterShape } from "../../model/drafter-shape.ts";
import { namedShape } from "../../model/released-shapes.ts";
import { randomWeights } from "../../weights/random.ts";
import { randomDrafterWeights } from "../../weights/random-drafter.ts";
import { buildProgram } from "./build-program.ts";
import { DeviceMemory } from "./device-memory.ts";
import { kernelSources } from "./kernels.gen.ts";
import { Pipelines } from "./pipelines.ts";
import { type PlaceOptions, placeAll } from "./places.ts";
import { stubDevice } from "./stub-device.cases.ts";

/** A 27B as it is built where its texts are taken. */
type Build = Pick<PlaceOptions, "arithmetic" | "kv" | "gdnPath">;

const f16: Build = { arithmetic: "f16", kv: "f16" };
const f32: Build = { arithmetic: "f32" };
const copying: Build = { arithmetic: "f32", gdnPath: "copy" };

/** The build in which a kernel's last variant is the one to show. A new kernel is named here. */
const builds: Readonly<Record<string, Build>> = {
  attend: f32,
  draft_attend: f16,
  draft_merge: f16,
  dynamic_conv: f16,
  embed: f32,
  embed_tiles: f16,
  feature_move: f16,
  fill: f16,
  gather: f16,
  gdn: f16,
  gdn_copy: copying,
  gdn_keep: f16,
  kv_move: f16,
  merge: f16,
  norm: f16,
  norm_conv: f16,
  norm_feature: f16,
  project: f32,
  project_few: f16,
  project_tiles: f16,
  rope: f16,
  swiglu: f16,
  tap: f16,
  topk: f16,
  topk_slice: f16,
};

/** Files that others include, and the bandwidth test's kernel, which is its own text. */
const others = [
  "draft_common",
  "dynamic_taps",
  "gdn_common",
  "pass.wgsl",
  "read",
  "tiles_common",
  "winner",
];

/** Beside a 27B, with convolutions of its own. */
const drafterShape = tinyDrafterShape(namedShape("27b")!, {
  intermediateSize: 17_408,
  layers: Array.from({ length: 5 }, () => ({ window: 2048, causal: false })),
  headCount: 32,
  kvHeadCount: 8,
  headDim: 128,
  featureLayers: [5, 19, 33, 47, 61],
  selector: { rank: 256 },
});

/** The last text of each kernel that a build compiles. */
async function textsOf(build: Build): Promise<ReadonlyMap<string, string>> {
  const options = {
    ...build,
    weights: randomWeights(namedShape("27b")!, { seed: 1, bits: 4, groupSize: 64 }),
    drafter: { weights: randomDrafterWeights(drafterShape, { seed: 1, bits: 4, groupSize: 64 }) },
    slots: 1,
    pages: 16,
    rowsMax: 512,
    drawsMax: 16,
    taps: [1],
    synthetic: true,
  };
  const open = stubDevice();
  const texts = new Map<string, string>();
  open.device.createShaderModule = ({ label, code }) => {
    texts.set(label!, code);
    return {} as GPUShaderModule;
  };
  const memory = new DeviceMemory(open);
  const places = await placeAll(memory, options);
  await buildProgram(open.device, memory, new Pipelines(open.device), options, places);
  return texts;
}

const known = new Map<Build, Promise<ReadonlyMap<string, string>>>();

test("every kernel is shown", () => {
  expect(Object.keys(kernelSources).sort()).toEqual([...Object.keys(builds), ...others].sort());
});

test.each(Object.entries(builds))("the text of %s", async (name, build) => {
  const texts = known.get(build) ?? textsOf(build);
  known.set(build, texts);
  const text = (await texts).get(name);
  expect(text).toBeDefined();
  await expect(`${text!.trimEnd()}\n`).toMatchFileSnapshot(`snapshots/${name}.wgsl`);
});
