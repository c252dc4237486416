import { expect, test } from "vitest";
import { Server } from "../api/server.ts";
import { Connection } from "./connection.ts";
import { MemoryDrawer } from "./memory-drawer.cases.ts";
import { Preferences } from "./preferences.ts";

/** A connection whose server answers as a test says, and its alarms. */
function connectionOf(answers: (() => Response)[]) {
  const preferences = new Preferences(new MemoryDrawer());
  const keys: unknown[] = [];
  const alarms: (() => void)[] = [];
  const server = new Server(
    async (_, { headers }) => {
      keys.push((headers as Record<string, string>)["Authorization"]);
      return answers.shift()!();
    },
    () => preferences.key,
  );
  const connection = new Connection(server, preferences, (_, ring) => {
    alarms.push(ring);
    return () => {};
  });
  return { connection, alarms, keys, preferences };
}

const models = () => Response.json({ data: [{ id: "nano", context_length: 64 }] });
const refused = (status: number) => () =>
  Response.json({ error: { message: `No: ${status}.` } }, { status });
const settled = () => new Promise((resolve) => setImmediate(resolve));

test("asks again until the model is there", async () => {
  const unreachable = () => {
    throw new TypeError();
  };
  const { connection, alarms } = connectionOf([refused(503), unreachable, models]);
  await connection.connect();
  expect(connection.problem.value).toBe("No: 503.");
  alarms.shift()!();
  await settled();
  expect(connection.problem.value).toBe("The server can't be reached.");
  alarms.shift()!();
  await settled();
  expect(connection.model.value).toEqual({ id: "nano", contextTokens: 64 });
  expect(connection.problem.value).toBeNull();
  expect(alarms).toEqual([]);
});

test("asks for a key where one is wanted, and tries it", async () => {
  const { connection, alarms, keys, preferences } = connectionOf([
    refused(401),
    refused(401),
    models,
  ]);
  await connection.connect();
  expect(connection.wantsKey.value).toBe(true);
  expect(alarms).toEqual([]);
  connection.useKey("wrong");
  await settled();
  expect(connection.wantsKey.value).toBe(true);
  connection.useKey(" right ");
  await settled();
  expect(connection.wantsKey.value).toBe(false);
  expect(connection.model.value?.id).toBe("nano");
  expect(keys).toEqual([undefined, "Bearer wrong", "Bearer right"]);
  expect(preferences.key).toBe("right");
});
