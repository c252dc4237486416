import { render } from "preact";
import { setAlarm, systemClock } from "../../../src/clock.ts";
import { openPage } from "../shared/page.ts";
import { Dashboard } from "./dashboard.tsx";
import { Poller } from "./poller.ts";

const page = openPage();
const poller = new Poller({ ...page, clock: systemClock, setAlarm });

function follow(): void {
  if (document.visibilityState === "visible") poller.start();
  else poller.stop();
}

document.addEventListener("visibilitychange", follow);
render(<Dashboard page={page} poller={poller} />, document.body);
follow();
