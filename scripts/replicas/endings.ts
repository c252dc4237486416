/** What is lost where a replica ends. */
import assert from "node:assert/strict";
import type { Balancer } from "./balancer.ts";
import { answered, post, Stream, user } from "./client.ts";
import type { Replica } from "./replica.ts";

const short = { temperature: 0, max_tokens: 8 };
const streamTokens = 400;

/** Two streams for each replica; conversations of their own, so that all have some. */
async function beginStreams(balancer: Balancer, replicas: readonly Replica[], topic: string) {
  const streams: Stream[] = [];
  for (let count = 0; count < 2 * replicas.length; count++) {
    const asked = [user(`Story ${count} of ${topic}, please.`)];
    streams.push(await new Stream(balancer.url, asked, streamTokens).begun());
  }
  return streams;
}

/** New conversations, more than there are replicas, and the ones that run. @returns how many */
async function askAnew({ url }: Balancer, topic: string): Promise<number> {
  const asked = Array.from({ length: 6 }, (_, count) => [
    [user(`Question ${count} about ${topic}.`)],
    [user(`Story ${count} of ${topic}, please.`), user("And then?")],
  ]).flat();
  await Promise.all(asked.map((messages) => answered(post(url, { messages, ...short }))));
  return asked.length;
}

/**
 * SIGKILL takes the streams of that replica and no others, and none is begun again elsewhere; what comes
 * then goes elsewhere at once.
 */
export async function aKillTakesItsOwn(
  balancer: Balancer,
  replicas: readonly Replica[],
): Promise<void> {
  const [victim, ...others] = replicas as [Replica, ...Replica[]];
  const streams = await beginStreams(balancer, replicas, "ghosts");
  const own = await victim.count("deltafold_requests_running");
  assert.ok(
    own > 0 && own < streams.length,
    `${own} of ${streams.length} streams are the victim's`,
  );
  const sent = async () => {
    const counts = await Promise.all(others.map((replica) => balancer.sent(replica)));
    return counts.reduce((sum, count) => sum + count, 0);
  };
  const before = await sent();
  assert.equal(await victim.end("SIGKILL"), "SIGKILL");
  const asked = await askAnew(balancer, "ghosts");
  const whole = await Promise.all(streams.map((stream) => stream.whole));
  assert.equal(whole.filter((each) => !each).length, own, "streams that were cut");
  assert.equal((await sent()) - before, asked, "requests of the others");
  await balancer.untilAll("DOWN", [victim]);
  await victim.startAgain();
  await balancer.untilAll("UP", [victim, ...others]);
}

/** SIGTERM takes nothing. */
export async function aDrainTakesNothing(
  balancer: Balancer,
  replicas: readonly Replica[],
): Promise<void> {
  const leaving = replicas[1]!;
  const streams = await beginStreams(balancer, replicas, "winter");
  const own = await leaving.count("deltafold_requests_running");
  assert.ok(own > 0, "the one that drains has a stream");
  const ended = leaving.end("SIGTERM");
  await askAnew(balancer, "winter");
  await balancer.untilAll("DOWN", [leaving]);
  await askAnew(balancer, "spring");
  const whole = await Promise.all(streams.map((stream) => stream.whole));
  assert.deepEqual(
    whole,
    streams.map(() => true),
  );
  assert.equal(await ended, 0);
  await leaving.startAgain();
  await balancer.untilAll("UP", replicas);
}

/** Clients that ask without a pause until they are told to stop. */
class Load {
  requests = 0;
  readonly #failures: string[] = [];
  readonly #clients: readonly Promise<void>[];
  #stopped = false;

  constructor(url: string, clients: number) {
    this.#clients = Array.from({ length: clients }, (_, client) => this.#ask(url, client));
  }

  /** @returns what went wrong */
  async stop(): Promise<readonly string[]> {
    this.#stopped = true;
    await Promise.all(this.#clients);
    return this.#failures;
  }

  async #ask(url: string, client: number): Promise<void> {
    for (let turn = 0; !this.#stopped; turn++) {
      const messages = [user(`Client ${client} asks question ${turn >> 2}.`), user(`${turn & 3}`)];
      this.requests++;
      if (turn % 2 === 0) {
        const asked = answered(post(url, { messages, ...short }));
        await asked.catch((error) => this.#failures.push(String(error)));
      } else if (!(await new Stream(url, messages, 24).whole)) this.#failures.push("a cut stream");
    }
  }
}

/** Every replica is drained and started again while clients ask; no request fails. */
export async function aRollingRestartFailsNothing(
  balancer: Balancer,
  replicas: readonly Replica[],
): Promise<void> {
  const load = new Load(balancer.url, 4);
  for (const replica of replicas) {
    const before = load.requests;
    assert.equal(await replica.end("SIGTERM"), 0);
    await replica.startAgain();
    await balancer.untilAll("UP", replicas);
    assert.ok(load.requests > before, "clients asked meanwhile");
  }
  assert.deepEqual(await load.stop(), []);
}
