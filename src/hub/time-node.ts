import { setTimeout as sleep } from "node:timers/promises";
import { setAlarm } from "../clock.ts";
import type { HubTime } from "./client.ts";

/** The system's. The process stays for its waits, where nothing else may hold it. */
export const hubTime: HubTime = {
  setAlarm,
  async wait(ms, signal) {
    await sleep(ms, undefined, { signal }).catch(() => signal.throwIfAborted());
  },
};
