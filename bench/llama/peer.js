/**
 * node-llama-cpp in a process of its own: at each message it measures a prompt and the reply behind it, as
 * ours.ts does. (JavaScript, because its types aren't there where it isn't installed.)
 */
import { getLlama } from "node-llama-cpp";

const [modelPath, threads, promptTokens, replyTokens] = [
  process.argv[2],
  ...process.argv.slice(3).map(Number),
];
const llama = await getLlama({ gpu: false, build: "never", maxThreads: threads });
const model = await llama.loadModel({ modelPath, gpuLayers: 0 });
const context = await model.createContext({
  contextSize: promptTokens + replyTokens + 256,
  batchSize: promptTokens,
  threads,
});
const sequence = context.getSequence();
const prompt = Array.from({ length: promptTokens }, (_, i) => (i * 7919) % 200_000);

process.on("message", async () => {
  await sequence.clearHistory();
  const begin = performance.now();
  let count = 0;
  let first = 0;
  // The first token comes with the prompt.
  for await (const _ of sequence.evaluate(prompt, { temperature: 0, yieldEogToken: true })) {
    if (count === 0) first = performance.now();
    if (count === replyTokens) break;
    count++;
  }
  const end = performance.now();
  process.send({
    prefill: (1000 * promptTokens) / (first - begin),
    decode: (1000 * replyTokens) / (end - first),
    peakBytes: 1024 * process.resourceUsage().maxRSS,
  });
});
process.send("ready");
