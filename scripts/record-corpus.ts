/**
 * `npm run corpus`: writes `fixtures/http` anew, which tests compare with what the server answers. Read
 * the difference before you commit it. `npm run corpus -- --times` writes nothing, and says for how long
 * a request that must be refused holds all others up.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { badRequests } from "../src/serve/bad-requests.cases.ts";
import { corpusFiles, written } from "../src/serve/corpus-files.cases.ts";
import { testServer } from "../src/serve/engine.cases.ts";

/** Each is sent so often, and its least time counts: the first compiles the code. */
const repeats = 5;
const slowestShown = 20;

const { values } = parseArgs({ options: { times: { type: "boolean", default: false } } });
if (values.times) await times();
else await recordAll();

async function recordAll(): Promise<void> {
  await mkdir(new URL("../fixtures/http/", import.meta.url), { recursive: true });
  let count = 0;
  for (const file of corpusFiles) {
    const exchanges = await file.record();
    await writeFile(file.url, written(exchanges));
    count += exchanges.length;
    console.log(`${String(exchanges.length).padStart(4)}  ${file.name}`);
  }
  console.log(`${String(count).padStart(4)}  in all`);
}

async function times(): Promise<void> {
  const { app, engine } = testServer({ contextTokens: 32_768 });
  const taken: { readonly what: string; readonly ms: number }[] = [];
  for (const { what, path, method, headers, body } of badRequests) {
    let least = Number.POSITIVE_INFINITY;
    for (let time = 0; time < repeats; time++) {
      // Of the one thread that serves, whoever else uses the machine.
      const before = process.threadCpuUsage();
      const init = { method, headers, ...(body !== null && { body }) };
      await (await app.request(path, init)).text();
      const { user, system } = process.threadCpuUsage(before);
      least = Math.min(least, (user + system) / 1000);
    }
    taken.push({ what, ms: least });
  }
  await engine[Symbol.asyncDispose]();
  taken.sort((one, other) => other.ms - one.ms);
  for (const { what, ms } of taken.slice(0, slowestShown)) {
    console.log(`${ms.toFixed(1).padStart(7)} ms  ${what}`);
  }
  console.log(`${taken.length} requests, each the least of ${repeats} times`);
}
