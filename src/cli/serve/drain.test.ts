import { afterEach, expect, test, vi } from "vitest";
import { drain } from "./drain.ts";
import { Listener } from "./listener.ts";

afterEach(() => void vi.useRealTimers());

const counts = { running: 0, waiting: 0 } as Parameters<typeof drain>[0]["counts"];

async function statuses({ url }: Listener) {
  const replies = ["/health/ready", "/health/live", "/v1/models"].map((path) => fetch(url + path));
  return (await Promise.all(replies)).map(({ status, headers }) => [
    status,
    headers.get("Connection"),
  ]);
}

test("who balances sees that it isn't ready before it refuses requests", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout"] });
  const notes: string[] = [];
  await using listener = await Listener.open("127.0.0.1", 0, () => new Response());
  const kept = [200, "keep-alive"];
  expect(await statuses(listener)).toEqual([kept, kept, kept]);
  const flags = { drainDelaySeconds: 5, drainSeconds: 30 };
  const drained = drain({ counts }, listener, flags, { note: (text) => notes.push(text) });
  const served = [200, "close"];
  const refused = [503, "close"];
  expect(await statuses(listener)).toEqual([refused, served, served]);
  await vi.advanceTimersByTimeAsync(4999);
  expect(await statuses(listener)).toEqual([refused, served, served]);
  await vi.advanceTimersByTimeAsync(1);
  expect(await statuses(listener)).toEqual([refused, served, refused]);
  await drained;
  expect(notes).toEqual([
    "stopping: not ready from now on, and refusing requests in 5 s",
    "stopping",
  ]);
});
