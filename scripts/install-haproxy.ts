/** Brings the HAProxy that the test of replicas stands behind: Debian's own, without starting a service. */
import { spawnSync } from "node:child_process";
import { install } from "./apt.ts";

const isHere = () => spawnSync("haproxy", ["-v"]).status === 0;

/** Whether it is there afterwards. Where it may not be installed (not root, not Debian), it may be already. */
export const installHaproxy = (): boolean =>
  install("haproxy", isHere, "the test of replicas can't run");
