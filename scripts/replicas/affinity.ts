/** Where conversations go: to where their cache is, and apart. */
import assert from "node:assert/strict";
import { Balancer } from "./balancer.ts";
import { answered, type Message, post, user } from "./client.ts";
import type { Replica } from "./replica.ts";

const places = ["river", "harbour", "mountain", "market", "library", "railway"];
/** Longer than what any two prompts begin with. */
const opening = (place: string, kind = "old") =>
  `Please tell me a long story about the ${kind} ${place} where I was born, and leave nothing out.`;
/** Of a prompt, what the next turn doesn't repeat: the head of the reply. */
const tailTokens = 8;
const short = { temperature: 0, max_tokens: 16 };

/** Requests that each replica gets while `ask` goes on. */
async function sentDuring(
  balancer: Balancer,
  replicas: readonly Replica[],
  ask: () => Promise<unknown>,
): Promise<number[]> {
  const sent = () => Promise.all(replicas.map((replica) => balancer.sent(replica)));
  const before = await sent();
  await ask();
  return (await sent()).map((count, index) => count - before[index]!);
}

const turnsEach = 4;

/** @returns of each turn after the first, whether it found the turns before in the cache */
async function talk(
  url: string,
  first: readonly Message[],
  beforeTurn?: (turn: number) => Promise<void>,
): Promise<boolean[]> {
  const messages = [...first];
  const found: boolean[] = [];
  let known = 0;
  for (let turn = 1; turn <= turnsEach; turn++) {
    await beforeTurn?.(turn);
    const { usage, choices } = await answered(post(url, { messages, ...short }));
    if (turn > 1) found.push(usage.prompt_tokens_details.cached_tokens >= known - tailTokens);
    known = usage.prompt_tokens;
    const content = choices[0].message.content ?? "";
    messages.push({ role: "assistant", content }, user(`And what came then, in part ${turn + 1}?`));
  }
  return found;
}

const talks = async (
  url: string,
  firsts: readonly (readonly Message[])[],
  beforeTurn?: (turn: number) => Promise<void>,
) => (await Promise.all(firsts.map((first) => talk(url, first, beforeTurn)))).flat();

const allFound = Array((turnsEach - 1) * places.length).fill(true);

/** A conversation finds its cache at each turn, and several are spread over all replicas. */
export async function conversationsStay(
  balancer: Balancer,
  replicas: readonly Replica[],
): Promise<void> {
  const system: Message = { role: "system", content: "You tell stories to children at bedtime." };
  for (const before of [[], [system]]) {
    const firsts = places.map((place) => [...before, user(opening(place))]);
    const sent = await sentDuring(balancer, replicas, async () => {
      assert.deepEqual(await talks(balancer.url, firsts), allFound);
    });
    assert.ok(
      sent.every((count) => count > 0),
      `requests of each replica: ${sent}`,
    );
  }
}

/**
 * Without the line that sends them home turns miss: the case above can fail. One conversation at a time, because
 * where all replicas are busy, the least loaded one is often that which has just answered.
 */
export async function withoutAffinityTheyMiss(
  _: Balancer,
  replicas: readonly Replica[],
): Promise<void> {
  const change = (config: string) => config.replace("stick match", "# stick match");
  await using balancer = await Balancer.start(replicas, change);
  const found: boolean[] = [];
  for (const place of places)
    found.push(...(await talk(balancer.url, [user(opening(place, "new"))])));
  assert.ok(found.includes(false), "no turn missed");
}

/** The balancer reads its files again amid conversations, which stay. */
export async function aReloadKeepsHomes(balancer: Balancer): Promise<void> {
  const reloaded = Promise.withResolvers<void>();
  let arrived = 0;
  const beforeTurn = async (turn: number) => {
    if (turn !== 3) return;
    arrived++;
    if (arrived === places.length) balancer.reload().then(reloaded.resolve, reloaded.reject);
    await reloaded.promise;
  };
  const firsts = places.map((place) => [user(opening(place, "distant"))]);
  assert.deepEqual(await talks(balancer.url, firsts, beforeTurn), allFound);
}

/** A conversation's n-th request, in each form in which the balancer must know it again. */
interface Form {
  readonly name: string;
  readonly path?: string;
  readonly headers?: Record<string, string>;
  body(more: readonly Message[]): object;
}

/** More than the balancer's buffer. */
const padding = "x".repeat(300_000);
const parts = (text: string) => [{ type: "text", text }] as const;
const system = "You are a guide.";

const forms: readonly Form[] = [
  {
    name: "parts",
    body: (more) => ({ messages: [{ role: "user", content: parts(opening("tower")) }, ...more] }),
  },
  {
    name: "parts after a system message",
    body: (more) => ({
      messages: [
        { role: "system", content: parts(system) },
        { role: "user", content: parts(opening("tower")) },
        ...more,
      ],
    }),
  },
  {
    name: "a body longer than the buffer",
    body: (more) => ({ messages: [user(opening("castle")), ...more], user: padding }),
  },
  {
    name: "a beginning longer than the buffer",
    body: (more) => ({ user: padding, messages: [user(opening("bridge")), ...more] }),
  },
  {
    name: "the header, whatever is said",
    headers: { "x-session-affinity": "session-1" },
    body: (more) => ({ messages: [user(`${more.length}`)] }),
  },
  {
    name: "Messages",
    path: "/v1/messages",
    body: (more) => ({ system, messages: [user(opening("mill")), ...more] }),
  },
  {
    name: "Responses of a text and messages",
    path: "/v1/responses",
    body: (more) => ({ instructions: system, input: [user(opening("inn")), ...more] }),
  },
];

const limits: Readonly<Record<string, object>> = {
  "/v1/responses": { max_output_tokens: 16, store: false },
};

/** Every form of request is known again. */
export async function everyFormIsKnown(
  balancer: Balancer,
  replicas: readonly Replica[],
): Promise<void> {
  for (const { name, path = "/v1/chat/completions", headers, body } of forms) {
    const sent = await sentDuring(balancer, replicas, async () => {
      for (const turn of [0, 1, 2]) {
        const more = Array.from({ length: turn }, (_, index): Message[] => [
          { role: "assistant", content: `Part ${index}.` },
          user("Go on."),
        ]).flat();
        const asked = { ...body(more), ...(limits[path] ?? short) };
        const response = await post(balancer.url, asked, { path, ...(headers && { headers }) });
        assert.equal(response.status, 200, `${name}: ${await response.text()}`);
      }
    });
    assert.deepEqual(sent.toSorted(), [0, 0, 3], `${name}: ${sent}`);
  }
}
