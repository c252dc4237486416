import { expect, test } from "vitest";
import { nextTask } from "../clock.ts";
import { Alarms } from "./alarms.cases.ts";
import { idle, testServer } from "./engine.cases.ts";
import { post, replyTo, textPath } from "./http.cases.ts";

const unreadMs = 1000;
const endless = { prompt: "x", max_tokens: 4000, ignore_eos: true, stream: true };

function slowServer() {
  const alarms = new Alarms();
  return { alarms, ...testServer({ app: { unreadMs, pingMs: 0, setAlarm: alarms.set } }) };
}

/** Waits until an event waits to be read. */
async function unread(alarms: Alarms): Promise<void> {
  while (alarms.count === 0) await nextTask();
}

test("a client that stops reading is dropped, and nobody else notices", async () => {
  const server = slowServer();
  const { app, engine, alarms } = server;
  const other = { prompt: "Once", max_tokens: 40, seed: 1, ignore_eos: true };
  const alone = await replyTo(app, textPath, other);
  const reader = (await post(app, textPath, endless)).body!.getReader();
  await reader.read();
  const beside = replyTo(app, textPath, other);
  await unread(alarms);
  alarms.pass(unreadMs - 1);
  while (engine.counts.running < 2) await nextTask();
  alarms.pass(1);
  expect((await beside).token_sha).toBe(alone.token_sha);
  await idle(server);
  await expect(reader.read()).rejects.toThrow("The client read nothing for 1 s.");
  expect(alarms.count).toBe(0);
  expect(server.reported).toEqual([]);
});

test("the connection is ended where the runtime lets us", async () => {
  const server = slowServer();
  const { app, alarms } = server;
  let ended = 0;
  const outgoing = { destroy: () => ended++ };
  const init = { method: "POST", headers: { "Content-Type": "application/json" } };
  const body = JSON.stringify(endless);
  await app.request(textPath, { ...init, body }, { outgoing });
  await unread(alarms);
  expect(ended).toBe(0);
  alarms.pass(unreadMs);
  expect(ended).toBe(1);
  await idle(server);
});

test("a client that reads slowly gets everything, and holds no slot for it", async () => {
  const server = slowServer();
  const { app, alarms } = server;
  const body = { prompt: "Once", max_tokens: 20, seed: 1, ignore_eos: true };
  const whole = await (await post(app, textPath, { ...body, stream: true })).text();
  const reader = (await post(app, textPath, { ...body, stream: true })).body!.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (let reads = 0; ; reads++) {
    const { done, value } = await reader.read();
    if (done) break;
    text += decoder.decode(value, { stream: true });
    if (reads === 0) await idle(server);
    // The last event is followed by none.
    if (!text.endsWith("[DONE]\n\n")) await unread(alarms);
    alarms.pass(unreadMs - 1);
  }
  const withoutTimes = (frames: string) =>
    frames.replace(/"(id|created|timings)":("[^"]*"|\d+|\{[^}]*\})/g, "");
  expect(withoutTimes(text)).toBe(withoutTimes(whole));
  expect(alarms.count).toBe(0);
});

test("no alarm is left of a client that hangs up", async () => {
  const server = slowServer();
  const { body } = await post(server.app, textPath, endless);
  await unread(server.alarms);
  await body!.cancel();
  expect(server.alarms.count).toBe(0);
  await idle(server);
});
