import type { Backend } from "../../backend/backend.ts";
import { slotId, type TokenId } from "../../ids.ts";
import { tinyShape } from "../../model/tiny-shape.ts";
import { pagesFor } from "../../state/kv-pages.ts";
import { randomWeights } from "../../weights/random.ts";
import type { Weights } from "../../weights/weights.ts";
import type { GateRun } from "./gate-run.ts";
import { eachGateWeights } from "./gate-weights.ts";
import { describeBackend, type GateOptions } from "./options.ts";
import { randomInts, Timeline } from "./timeline.ts";

const longest = 300;
const chunkSizes = [1, 7, 16, 64, 128, longest];
/** Around every edge that a kernel has: vectors, row tiles, pages, chunks. */
const sampleLengths = [1, 2, 3, 4, 7, 8, 9, 16, 17, 31, 33, 63, 64, 65, 127, 129, 200, 256, 300];
const sampleSeed = 20261129;

/** Keys of three chunks of attention, the last of them short. */
const manyTokens = 1100;
/** What of them goes one row at a time: each row walks all the keys. */
const lastRows = 20;

/** A prompt's state, KV and logits don't depend on how it is cut, nor on the slot that holds it. */
export async function chunksGate(run: GateRun, options: GateOptions): Promise<string> {
  const rest = Array.from({ length: longest }, (_, index) => index + 1);
  const lengths = [...sampleLengths, ...rest.filter((length) => !sampleLengths.includes(length))];
  let device = "";
  await eachGateWeights(run, options, async ({ name, weights }) => {
    await using backend = await options.open(sizesFor(weights));
    device = describeBackend(backend);
    const ids = prompt(weights.shape.vocabSize, longest);
    for (const length of options.full ? lengths : sampleLengths) {
      await run.cell(`${name}: ${length} tokens`, () =>
        sameInChunks(backend, ids.slice(0, length)),
      );
    }
    await run.cell(`${name}: moved slots`, () => sameWhenMoved(backend, ids.slice(0, 150)));
    if (!options.full) {
      run.skip(`${name}: the other ${longest - sampleLengths.length} lengths`, "--full runs them");
    }
  });
  await run.cell(`two attention layers: ${manyTokens} tokens`, () => sameOverManyKeys(options));
  return device;
}

function sizesFor(weights: Weights) {
  const pages = 2 * pagesFor(longest);
  return { weights, slots: 2, pages, rowsMax: longest, drawsMax: 1, taps: [] };
}

function prompt(vocabSize: number, tokens: number): TokenId[] {
  const random = randomInts(sampleSeed);
  return Array.from({ length: tokens }, () => random(vocabSize));
}

/** Keys of several chunks: long passes, short ones and single rows cut them differently. */
async function sameOverManyKeys(options: GateOptions) {
  const shape = tinyShape({ layerTypes: ["full", "full"], contextMax: manyTokens });
  const weights = randomWeights(shape, { seed: 7, bits: 4, groupSize: 32 });
  const pages = pagesFor(manyTokens);
  const sizes = { weights, slots: 1, pages, rowsMax: 512, drawsMax: 1, taps: [] };
  await using backend = await options.open(sizes);
  const ids = prompt(shape.vocabSize, manyTokens);
  const chunksThenRows = async (chunk: number, rows: number) => {
    const timeline = new Timeline(backend, 0, pages);
    await timeline.feedChunks(ids.slice(0, manyTokens - rows), chunk);
    await timeline.feedChunks(ids.slice(manyTokens - rows), 1);
    const sha = await timeline.fingerprint();
    timeline.close();
    return sha;
  };
  return sameShas([
    ["chunks of 512", await chunksThenRows(512, 0)],
    ["chunks of 128", await chunksThenRows(128, 0)],
    ["chunks of 67", await chunksThenRows(67, 0)],
    [`single rows after ${manyTokens - lastRows}`, await chunksThenRows(256, lastRows)],
  ]);
}

/** What each way led to: all must equal the first. */
function sameShas(ways: readonly (readonly [way: string, sha: string])[]) {
  const names = (some: typeof ways) => some.map(([way]) => way).join(", ");
  const [[first, right]] = ways as [(typeof ways)[0]];
  const different = ways.filter(([, sha]) => sha !== right);
  const ok = different.length === 0;
  return {
    ok,
    detail: ok
      ? `${names(ways)}: ${right.slice(0, 12)}`
      : `${names(different)} differ from ${first}`,
  };
}

async function sameInChunks(backend: Backend, ids: readonly TokenId[]) {
  const sizes = [...chunkSizes.filter((size) => size < ids.length), ids.length];
  const ways: [string, string][] = [];
  for (const size of sizes) {
    const timeline = new Timeline(backend, 0, pagesFor(longest));
    await timeline.feedChunks(ids, size);
    ways.push([`chunks of ${size}`, await timeline.fingerprint()]);
    timeline.close();
  }
  return sameShas(ways);
}

/** Every pass sends the state to the other slot: scan and copy must equal the scan in place. */
async function sameWhenMoved(backend: Backend, ids: readonly TokenId[]) {
  const still = new Timeline(backend, 0, pagesFor(longest));
  await still.feedChunks(ids, 16);
  const inPlace = await still.fingerprint();
  still.close();
  const moving = new Timeline(backend, 0, pagesFor(longest));
  backend.open(slotId(1));
  for (let at = 0; at < ids.length; at += 16) {
    await moving.feed(ids.slice(at, at + 16), 1, slotId(1 - moving.slot));
  }
  const moved = await moving.fingerprint();
  backend.release(slotId(0));
  backend.release(slotId(1));
  const ok = moved === inPlace;
  return { ok, detail: `${inPlace.slice(0, 12)} in place, ${moved.slice(0, 12)} moved` };
}
