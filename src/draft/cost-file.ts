import { isRecord } from "../json.ts";
import { areCosts, type MeasuredCosts, type SharedCosts } from "./cost-table.ts";

/** Raised when the file's fields or the way of measuring change. */
const version = 2;

/** What costs were measured with: any other device, build or model has others. */
export interface CostIdentity {
  readonly device: string;
  readonly build: string;
  readonly model: string;
}

/** The JSON text to keep. */
export function writeCosts(costs: MeasuredCosts, { device, build, model }: CostIdentity): string {
  return `${JSON.stringify({ version, device, build, model, ...costs })}\n`;
}

/** What `writeCosts` wrote for this identity; null for any other text, because measuring again is cheap. */
export function readCosts(text: string, identity: CostIdentity): MeasuredCosts | null {
  const file = parsed(text);
  if (!isRecord(file) || file["version"] !== version) return null;
  const same = (["device", "build", "model"] as const).every((key) => file[key] === identity[key]);
  const { verify, draftMs, keepMs, shared } = file;
  if (!same || !isPairs(verify) || typeof keepMs !== "number") return null;
  if (!isMs(draftMs) || !isShared(shared)) return null;
  const costs = { verify, draftMs, keepMs, shared };
  return areCosts(costs) ? costs : null;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

const isMs = (value: unknown): value is number | null =>
  value === null || typeof value === "number";

function isShared(value: unknown): value is SharedCosts | null {
  if (value === null) return true;
  if (!isRecord(value)) return false;
  const numbers = ["streams", "plainMs", "rowMs", "keepMs"].map((key) => value[key]);
  return numbers.every((each) => typeof each === "number") && isMs(value["draftMs"]);
}

function isPairs(value: unknown): value is [number, number][] {
  return (
    Array.isArray(value) &&
    value.every(
      (pair) =>
        Array.isArray(pair) && pair.length === 2 && pair.every((part) => typeof part === "number"),
    )
  );
}
