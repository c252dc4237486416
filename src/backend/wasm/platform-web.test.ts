import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { ThreadSetup } from "./platform.ts";
import { webPlatform } from "./platform-web.ts";

/** A worker that does what the test says. */
class FakeWorker extends EventTarget {
  static readonly all: FakeWorker[] = [];
  terminations = 0;

  constructor() {
    super();
    FakeWorker.all.push(this);
  }

  postMessage(): void {}

  terminate(): void {
    this.terminations++;
  }

  tell(error: string | null): void {
    this.dispatchEvent(new MessageEvent("message", { data: { error } }));
  }
}

beforeEach(() => {
  FakeWorker.all.length = 0;
  vi.stubGlobal("Worker", FakeWorker);
  vi.stubGlobal("crossOriginIsolated", true);
});
afterEach(() => vi.unstubAllGlobals());

function spawn() {
  const failed = vi.fn<(error: Error) => void>();
  const thread = webPlatform.spawn({} as ThreadSetup, failed);
  return { failed, thread, worker: FakeWorker.all[0]! };
}

test.each<[string, (worker: FakeWorker) => void, string]>([
  ["tells why", (worker) => worker.tell("no memory"), "no memory"],
  [
    "has no script",
    (worker) => worker.dispatchEvent(new Event("error")),
    "its script could not be loaded",
  ],
])("ends a worker that %s and doesn't start", async (_, fail, message) => {
  const { failed, thread, worker } = spawn();
  fail(worker);
  await expect(thread).rejects.toThrow(message);
  expect(failed).toHaveBeenCalledOnce();
  expect(worker.terminations).toBe(1);
});

test("ends a worker that fails later", async () => {
  const { failed, thread, worker } = spawn();
  worker.tell(null);
  await thread;
  expect(worker.terminations).toBe(0);
  worker.tell("a kernel aborted");
  expect(failed.mock.calls[0]![0].message).toBe("a kernel aborted");
  expect(worker.terminations).toBe(1);
});
