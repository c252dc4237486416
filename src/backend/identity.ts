import type { BackendInfo } from "./backend.ts";

/** What a backend's results and times depend on, besides weights and build: its device and arithmetic. */
export const identityOf = ({ device, arithmetic, kv }: BackendInfo): string =>
  `${device}; ${arithmetic}; ${kv ?? "f32"}`;

/** The same without how many threads there are, which changes times alone: equal devices of other machines. */
export const deviceClassOf = ({ name, device, arithmetic, kv }: BackendInfo): string =>
  `${name === "webgpu" ? `webgpu, ${device}` : name}; ${arithmetic}; ${kv ?? "f32"}`;
