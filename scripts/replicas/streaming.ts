/** What passes between a replica and its client. */
import assert from "node:assert/strict";
import type { Balancer } from "./balancer.ts";
import { post, Stream, user } from "./client.ts";
import type { Replica } from "./replica.ts";
import { until } from "./until.ts";

/** Streams that a replica writes, and requests that it lets wait. */
const streamsOf = (replica: Replica) => replica.count("deltafold_requests_running");
const waitingOf = (replica: Replica) => replica.count("deltafold_requests_waiting");

async function total(of: (replica: Replica) => Promise<number>, replicas: readonly Replica[]) {
  return (await Promise.all(replicas.map(of))).reduce((sum, count) => sum + count, 0);
}

/** What events say, but for ids, times and speeds. */
const said = ({ events }: Stream) =>
  events
    .filter((event) => event !== "data: [DONE]")
    .map((event) => JSON.parse(event.slice("data: ".length)).choices);

/** The first event is there while the replica still writes, and events are those that it sends. */
export async function eventsComeAsTheyAre(
  balancer: Balancer,
  replicas: readonly Replica[],
): Promise<void> {
  const asked = [user("Count the stars.")];
  const endless = await new Stream(balancer.url, asked).begun();
  assert.equal(await total(streamsOf, replicas), 1, "the reply ended before its first event came");
  endless.hangUp();
  const both = [balancer.url, replicas[0]!.url].map((url) => new Stream(url, asked, 100));
  for (const { whole } of both) assert.ok(await whole);
  const [passed, direct] = both.map(said);
  assert.deepEqual(passed, direct);
}

/** Who hangs up frees the slot, before the reply began and while it is streamed. */
export async function hangUpsArrive(
  balancer: Balancer,
  replicas: readonly Replica[],
): Promise<void> {
  await until("none runs", async () => (await total(streamsOf, replicas)) === 0);
  const stream = await new Stream(balancer.url, [user("Begin.")]).begun();
  const silent = new AbortController();
  const body = { messages: [user("Say nothing yet.")], ignore_eos: true, max_tokens: 3000 };
  post(balancer.url, body, { signal: silent.signal }).catch(() => {});
  await until("both run", async () => (await total(streamsOf, replicas)) === 2);
  silent.abort();
  await until("the silent one is gone", async () => (await total(streamsOf, replicas)) === 1);
  stream.hangUp();
  await until("both are gone", async () => (await total(streamsOf, replicas)) === 0);
}

async function refusal(url: string) {
  const response = await post(url, { messages: [user("And I?")] });
  const { status, headers } = response;
  const [retryAfter, type] = ["Retry-After", "Content-Type"].map((name) => headers.get(name));
  return { status, retryAfter, type, body: await response.text() };
}

/** As many as a replica serves at once and lets wait. */
const slots = 8;
const queue = 8;

/**
 * A conversation that many have at once fills its home, then the others. What comes when all slots and
 * queues are full is told so in the replica's own words.
 */
export async function fullOnesSayWhen(
  balancer: Balancer,
  replicas: readonly Replica[],
): Promise<void> {
  const asked = [user("What does everybody ask?")];
  const streams: Stream[] = [];
  for (let count = 0; count < slots * replicas.length; count++) {
    streams.push(await new Stream(balancer.url, asked).begun());
    if (count !== slots - 1) continue;
    const running = await Promise.all(replicas.map(streamsOf));
    assert.deepEqual(running.toSorted(), [0, 0, slots], "they have one home until it is full");
  }
  assert.deepEqual(
    await Promise.all(replicas.map(streamsOf)),
    replicas.map(() => slots),
  );
  for (let count = 1; count <= queue * replicas.length; count++) {
    streams.push(new Stream(balancer.url, asked));
    await until("it waits", async () => (await total(waitingOf, replicas)) === count);
  }
  const [passed, direct] = await Promise.all([refusal(balancer.url), refusal(replicas[0]!.url)]);
  assert.equal(direct.status, 429);
  assert.ok(Number(direct.retryAfter) > 0);
  assert.deepEqual(passed, direct);
  for (const stream of streams) stream.hangUp();
  await until("all are gone", async () => (await total(streamsOf, replicas)) === 0);
}
