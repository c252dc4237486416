import { type CostIdentity, readCosts, writeCosts } from "./cost-file.ts";
import type { MeasuredCosts } from "./cost-table.ts";

/** Where measured costs are kept. Never throws: what can't be kept is measured again. */
export interface CostStore {
  /** Names this build, and the processor that it runs on. */
  readonly build: string;
  read(identity: CostIdentity): Promise<string | null>;
  write(identity: CostIdentity, text: string): Promise<void>;
}

/** The kept costs of a device and model; else what `measure` finds, which is kept then. */
export async function storedCosts(
  store: CostStore | null,
  of: Omit<CostIdentity, "build">,
  measure: () => Promise<MeasuredCosts | null>,
): Promise<MeasuredCosts | null> {
  const identity = store && { ...of, build: store.build };
  const kept = identity && (await store.read(identity));
  const known = kept && readCosts(kept, identity);
  if (known) return known;
  const costs = await measure();
  if (costs && identity) await store.write(identity, writeCosts(costs, identity));
  return costs;
}
