/**
 * `npm run test:replicas`: three servers of nano behind HAProxy with the file that is shipped
 * (deploy/haproxy), over loopback; they are filled, killed, drained and restarted. Under 3 minutes.
 */
import { fileURLToPath } from "node:url";
import { systemClock } from "../src/clock.ts";
import { installHaproxy } from "./install-haproxy.ts";
import {
  aReloadKeepsHomes,
  conversationsStay,
  everyFormIsKnown,
  withoutAffinityTheyMiss,
} from "./replicas/affinity.ts";
import { Balancer } from "./replicas/balancer.ts";
import {
  aDrainTakesNothing,
  aKillTakesItsOwn,
  aRollingRestartFailsNothing,
} from "./replicas/endings.ts";
import { Replica } from "./replicas/replica.ts";
import { eventsComeAsTheyAre, fullOnesSayWhen, hangUpsArrive } from "./replicas/streaming.ts";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));

const cases = [
  conversationsStay,
  withoutAffinityTheyMiss,
  aReloadKeepsHomes,
  everyFormIsKnown,
  eventsComeAsTheyAre,
  hangUpsArrive,
  fullOnesSayWhen,
  aKillTakesItsOwn,
  aDrainTakesNothing,
  aRollingRestartFailsNothing,
];

let passed = 0;
if (installHaproxy()) {
  await using stack = new AsyncDisposableStack();
  const replicas: Replica[] = [];
  for (let count = 0; count < 3; count++) replicas.push(stack.use(await Replica.start()));
  const balancer = stack.use(await Balancer.start(replicas));
  for (const run of cases) {
    const startMs = systemClock.nowMs();
    try {
      await run(balancer, replicas);
      passed++;
      console.log(`ok    ${run.name}, ${Math.round((systemClock.nowMs() - startMs) / 1000)} s`);
    } catch (error) {
      console.log(`FAIL  ${run.name}\n${error}\n${balancer.log.split("\n").slice(-20).join("\n")}`);
      // Replicas may be missing now.
      break;
    }
  }
} else console.log("FAIL  haproxy isn't here, and may not be installed");
console.log(`${passed} passed, ${cases.length - passed} failed`);
process.exitCode = passed === cases.length ? 0 : 1;
