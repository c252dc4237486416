import { pageRows } from "../../limits.ts";
import { type DeviceOptions, pageBytes } from "./device-options.cases.ts";
import type { Random } from "./random.cases.ts";

/** What a world has most of. */
export type Theme =
  /** Conversations that go on, are edited, and have beginnings in common. */
  | "talks"
  /** Many short requests beside a long one. */
  | "crowd"
  /** Long replies, for which there are too few pages. */
  | "long"
  /** Prompts that are worth reading from a disk. */
  | "disk";

/** As often as each is worth its time. */
const themes: readonly Theme[] = [
  ...new Array<Theme>(7).fill("talks"),
  ...new Array<Theme>(2).fill("crowd"),
  ...new Array<Theme>(2).fill("disk"),
  "long",
];

/** Everything about a world but its requests. */
export interface Scenario {
  readonly theme: Theme;
  readonly device: DeviceOptions;
  /** Of the devices that are opened after a loss; each may fail too. Null: there is none. */
  readonly openings: readonly ("fails" | "opens")[] | null;
  readonly chunkRows: number;
  readonly queueMax: number;
  readonly decodeShare: number;
  readonly cacheBytes: number;
  readonly disk: DiskScenario | null;
  readonly requests: number;
  /** When it is closed, whoever is there; null: when all have been served. */
  readonly closesAfterMs: number | null;
}

export interface DiskScenario {
  readonly maxBytes: number;
  /** ms of a call. */
  readonly callMs: number;
  /** One call in so many fails, is cut short or comes back wrong; 0: none. */
  readonly faultOnceIn: number;
}

export function randomScenario(random: Random): Scenario {
  const theme = random.pick(themes);
  const loss = random.once(8);
  const faults = random.once(4);
  return {
    theme,
    device: {
      slots: random.between(theme === "crowd" || theme === "long" ? 2 : 1, 4),
      pages: pagesOf(theme, random),
      // Drafts make long replies short.
      drafts: theme === "long" ? !random.once(4) : random.once(2),
      brokenOnceIn: theme !== "long" && random.once(6) ? 211 : 0,
      passMs: random.between(1, 8),
      rowMs: random.pick([0, 0.25, 1]),
      failingPasses: new Set(
        faults ? random.list(random.between(1, 3), () => random.between(1, 60)) : [],
      ),
      refusedHolds: new Set(
        random.once(5) ? random.list(random.between(1, 4), () => random.between(1, 12)) : [],
      ),
      failingSaves: new Set(random.once(8) ? [random.between(1, 6)] : []),
      lostIn: loss ? random.between(1, 150) : 0,
      lostAfter: random.once(2),
    },
    openings: random.once(4) ? null : random.list(3, () => (random.once(3) ? "fails" : "opens")),
    chunkRows: random.pick([8, 16, 32, 64, 100, 128]),
    queueMax: theme === "crowd" ? 40 : random.pick([0, 1, 2, 4, 20]),
    decodeShare: random.pick([0, 0.25, 0.5, 0.9]),
    cacheBytes: cacheBytesOf(theme, random),
    disk: theme === "disk" ? randomDisk(random) : null,
    requests: requestsOf(theme, random),
    closesAfterMs: random.once(15) ? random.below(800) : null,
  };
}

function pagesOf(theme: Theme, random: Random): number {
  // Two long replies are admitted, and can't both reach their ends.
  if (theme === "long") return 20;
  if (theme === "disk") return random.between(8, 16);
  return random.between(2, 14);
}

/** From nothing over a few states to plenty. */
function cacheBytesOf(theme: Theme, random: Random): number {
  if (theme === "disk") return random.between(6, 14) * (pageBytes + 4);
  return random.pick([0, 1, random.between(2, 8), random.between(4, 16), 1000]) * (pageBytes + 4);
}

function requestsOf(theme: Theme, random: Random): number {
  if (theme === "crowd") return random.between(14, 36);
  if (theme === "long") return random.between(2, 3);
  if (theme === "disk") return random.between(5, 12);
  return random.between(2, 12);
}

const randomDisk = (random: Random): DiskScenario => ({
  maxBytes: random.pick([8_000, 40_000, 1_000_000]),
  callMs: random.pick([0, 1, 10, 200]),
  faultOnceIn: random.pick([0, 0, 4, 12]),
});

/** Tokens of prompt and reply together that a world has room for, and some that it hasn't. */
export const tokensMost = ({ device }: Scenario): number => device.pages * pageRows;
