import type { VNode } from "preact";
import type { Health } from "../api/server.ts";
import { absent } from "../shared/format.ts";
import { KeyForm } from "../shared/key-form.tsx";
import type { Page } from "../shared/page.ts";
import { ThemeSwitch } from "../shared/theme-switch.tsx";
import { Charts } from "./charts.tsx";
import type { Poller } from "./poller.ts";
import { Memory, Tiles } from "./tiles.tsx";

/** The page at /dashboard. */
export function Dashboard({ page, poller }: { page: Page; poller: Poller }): VNode {
  const health = poller.health.value;
  const readings = poller.readings.value;
  const latest = readings.at(-1) ?? null;
  const status = statusOf(health, poller.problem.value);
  return (
    <div class="dashboard">
      <header class="bar">
        <h1 class="model">
          <span class="hidden">deltafold: </span>
          {health?.model ?? "Dashboard"}
        </h1>
        <a class="quiet" href="./">
          Chat
        </a>
        <ThemeSwitch preferences={page.preferences} />
      </header>
      <main>
        {page.connection.wantsKey.value && <KeyForm connection={page.connection} />}
        <p role="status" class={status.isWell ? "status" : "status ill"}>
          {status.text}
        </p>
        <Tiles latest={latest} health={health} />
        <div class="charts">
          <Charts readings={readings} />
          <Memory latest={latest} health={health} />
        </div>
      </main>
    </div>
  );
}

interface Status {
  readonly text: string;
  readonly isWell: boolean;
}

function statusOf(health: Health | null, problem: string | null): Status {
  if (problem !== null) return { text: problem, isWell: false };
  if (health === null) return { text: "Asking the server", isWell: true };
  const { name, device } = health.backend ?? {};
  const parts = [health.status ?? absent, health.reason, name, device];
  return { text: parts.filter(Boolean).join(" · "), isWell: health.status === "ok" };
}
