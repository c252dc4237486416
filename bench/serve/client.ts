/** Clients in a process of their own, which do what their parent tells them and check what they get. */
import { once } from "node:events";
import { Agent, request } from "node:http";

export interface ClientTask {
  readonly url: string;
  /** A request for a streamed reply. */
  readonly body: object;
  /** Of the reply. */
  readonly tokens: number;
  /** Requests at once. */
  readonly busy: number;
  /** Connections that have brought a request before, and stay. */
  readonly idle: number;
}

export interface ClientResult {
  /** Replies of the right length. */
  readonly whole: number;
  /** Connections that still bring a request. */
  readonly idle: number;
}

async function answer(agent: Agent, url: string, body: object | null): Promise<string> {
  const headers = { "Content-Type": "application/json" };
  const sent = request(url, { agent, method: body ? "POST" : "GET", headers });
  sent.end(body ? JSON.stringify(body) : undefined);
  const [response] = await once(sent, "response");
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/** Has each connection bring a request. */
async function touch(agents: readonly Agent[], url: string): Promise<number> {
  const answers = await Promise.allSettled(
    agents.map((agent) => answer(agent, `${url}/health`, null)),
  );
  return answers.filter(({ status }) => status === "fulfilled").length;
}

async function perform(task: ClientTask): Promise<ClientResult> {
  const { url, body, tokens, busy, idle } = task;
  const agents = Array.from({ length: idle }, () => new Agent({ keepAlive: true, maxSockets: 1 }));
  await touch(agents, url);
  const agent = new Agent();
  const endpoint = `${url}/v1/chat/completions`;
  const texts = await Promise.all(
    Array.from({ length: busy }, () => answer(agent, endpoint, body)),
  );
  const whole = texts.filter(
    (text) => text.includes(`"completion_tokens":${tokens},`) && text.endsWith("data: [DONE]\n\n"),
  );
  const alive = await touch(agents, url);
  for (const each of agents) each.destroy();
  return { whole: whole.length, idle: alive };
}

process.on("message", async (task: ClientTask) => process.send!(await perform(task)));
