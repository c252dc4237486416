import type { BackendInfo } from "./backend.ts";

/** What a backend's results and times depend on, besides weights and build: its device and arithmetic. */
export const identityOf = ({ device, arithmetic, kv }: BackendInfo): string =>
  `${device}; ${arithmetic}; ${kv ?? "f32"}`;
