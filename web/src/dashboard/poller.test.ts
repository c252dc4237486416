import { expect, test } from "vitest";
import { Server } from "../api/server.ts";
import { Connection } from "../shared/connection.ts";
import { MemoryDrawer } from "../shared/memory-drawer.cases.ts";
import { Preferences } from "../shared/preferences.ts";
import { Poller } from "./poller.ts";

const settled = () => new Promise((resolve) => setImmediate(resolve));

/** A poller whose time and server a test plays. */
function pollerOf(answer: (path: string) => Response) {
  const asked: string[] = [];
  const alarms = new Set<() => void>();
  const time = { ms: 0 };
  const preferences = new Preferences(new MemoryDrawer());
  const server = new Server(
    async (path) => {
      asked.push(path);
      return answer(path);
    },
    () => preferences.key,
  );
  const setAlarm = (_: number, ring: () => void) => {
    alarms.add(ring);
    return () => alarms.delete(ring);
  };
  const connection = new Connection(server, preferences, setAlarm);
  const clock = { nowMs: () => time.ms, unixSeconds: () => 0 };
  const poller = new Poller({ server, connection, clock, setAlarm });
  /** A second passes. */
  const tick = async () => {
    time.ms += 1000;
    for (const ring of [...alarms]) {
      alarms.delete(ring);
      ring();
    }
    await settled();
  };
  return { poller, connection, asked, alarms, tick };
}

test("asks once a second, from start to stop", async () => {
  let tokens = 0;
  const { poller, asked, alarms, tick } = pollerOf((path) => {
    if (path === "health") return Response.json({ status: "ok", slots: 2 });
    tokens += 7;
    return new Response(`deltafold_generation_tokens_total ${tokens}\n`);
  });
  poller.start();
  await settled();
  await tick();
  await tick();
  expect(asked.toSorted()).toEqual(
    [..."hhhmmm"].map((each) => (each === "h" ? "health" : "metrics")),
  );
  expect(poller.readings.value.map((each) => each.replyTokensPerSecond)).toEqual([null, 7, 7]);
  expect(poller.health.value).toEqual({ status: "ok", slots: 2 });
  poller.stop();
  expect(alarms.size).toBe(0);
  poller.start();
  poller.start();
  await settled();
  expect(alarms.size).toBe(1);
  expect(poller.readings.value.at(-1)!.replyTokensPerSecond).toBeNull();
});

test("does with the health where there are no metrics", async () => {
  const { poller } = pollerOf((path) =>
    path === "health" ? Response.json({ slots: 2 }) : new Response("", { status: 404 }),
  );
  poller.start();
  await settled();
  expect(poller.readings.value).toMatchObject([{ slots: 2, running: null }]);
  expect(poller.problem.value).toBeNull();
});

test("tells what went wrong, and goes on", async () => {
  let status = 401;
  const { poller, connection, tick } = pollerOf((path) => {
    if (status !== 200) return Response.json({ error: { message: "No." } }, { status });
    return path === "health" ? Response.json({}) : new Response("");
  });
  poller.start();
  await settled();
  expect(poller.problem.value).toBe("No.");
  expect(connection.wantsKey.value).toBe(true);
  status = 200;
  await tick();
  expect(poller.problem.value).toBeNull();
  expect(poller.readings.value).toHaveLength(1);
});
