import { createHash } from "node:crypto";
import type { RoundOutcome } from "../live-stream.ts";
import type { Check, Journal } from "./journal.cases.ts";
import type { Scenario } from "./scenario.cases.ts";
import type { Served } from "./served.cases.ts";

/** What was wrong with a world's streams, now that all have ended. */
export function checkOutcome(
  journal: Journal,
  served: Served,
  scenario: Scenario,
  lost: boolean,
): void {
  const { number, outcomes } = served;
  const expect = (holds: boolean, check: Check, what: string) =>
    journal.expect(holds, check, () => `stream ${number} ${what}`);
  expect(outcomes.length === 1, "ends", `ended ${outcomes.length} times`);
  const [outcome] = outcomes;
  if (!outcome) return;
  const { reason, error } = outcome;
  const { expected } = served.arrival;
  const tokens = served.tokens.join(",");
  const whole = expected.ids.join(",");
  if (reason === "error") {
    const own = expected.reason === "error" && error?.code === "non_finite_logits";
    const told = served.hurt && /planted/.test(error?.message ?? "");
    const gone = lost && error?.code === "backend_lost";
    expect(own || told || gone, "error", `ended with: ${error?.message}`);
    if (own) expect(tokens === whole, "tokens", differenceOf(served));
  } else if (reason === "cancelled") {
    expect(served.cancelled, "ends", "was cancelled by nobody");
  } else {
    expect(reason === expected.reason, "tokens", `ended by ${reason}, not ${expected.reason}`);
    expect(tokens === whole, "tokens", differenceOf(served));
    checkFingerprints(expect, served, outcome, scenario);
  }
  const begun = expected.ids.slice(0, served.tokens.length).join(",");
  expect(tokens === begun, "tokens", differenceOf(served));
  checkRows(expect, served, outcome, scenario);
}

/** The first token that a reply has and should not have, or the other way round. */
function differenceOf({ tokens, arrival: { expected } }: Served): string {
  const at = tokens.findIndex((id, index) => id !== expected.ids[index]);
  const place = at < 0 ? tokens.length : at;
  return `has token ${tokens[place]} at ${place} of ${expected.ids.length}, not ${expected.ids[place]}`;
}

type Expect = (holds: boolean, check: Check, what: string) => void;

function checkFingerprints(
  expect: Expect,
  { arrival }: Served,
  { stateSha, contextSha }: RoundOutcome,
  { device }: Scenario,
): void {
  const { request, expected } = arrival;
  expect(stateSha === expected.stateSha, "fingerprint", "ended in another state");
  const drafted = device.drafts && request.draft;
  const context = drafted ? expected.contextSha : null;
  expect(contextSha === context, "fingerprint", "ended with another context of the drafter");
}

function checkRows(
  expect: Expect,
  { arrival, interrupted, filledRows, decodedRows, tokens }: Served,
  { reason, cachedRows, cacheMiss, speculative }: RoundOutcome,
  { cacheBytes, device }: Scenario,
): void {
  const { promptIds, marks, draft } = arrival.request;
  const begun = filledRows > 0;
  if (begun) {
    expect((cacheMiss === null) === cachedRows > 0, "cached rows", `has ${cachedRows} and a miss`);
    const off = cacheBytes === 0 || !marks;
    expect((cacheMiss === "off") === off, "cached rows", `misses because of ${cacheMiss}`);
  }
  const needed = promptIds.length - cachedRows;
  const whole = tokens.length > 0 || reason === "length";
  const right = whole ? filledRows === needed : filledRows <= needed;
  const what = `computed ${filledRows} rows of a prompt of ${promptIds.length}, ${cachedRows} cached`;
  expect(interrupted || right, "cached rows", what);
  const plain = !device.drafts || !draft;
  const rounds = Math.max(0, tokens.length - 1);
  if (!plain || interrupted) return;
  // A pass that fails is of no use, and neither is the one in which a client leaves.
  const most = rounds + (reason === "error" || reason === "cancelled" ? 1 : 0);
  expect(decodedRows <= most, "rows", `computed ${decodedRows} rows for ${rounds} tokens`);
  expect(speculative.drafted === 0, "rows", "has drafts without a drafter");
}

/** A line about an end. */
export function describeOutcome({ number, tokens }: Served, outcome: RoundOutcome): string {
  const { reason, error, cachedRows, cacheMiss, stateSha, contextSha, speculative } = outcome;
  const ids = createHash("sha256").update(tokens.join(",")).digest("hex").slice(0, 12);
  const parts = [reason, error?.code, tokens.length, ids, cachedRows, cacheMiss];
  const prints = [stateSha?.slice(0, 12), contextSha?.slice(0, 12), speculative.rounds];
  return `stream ${number} ends: ${[...parts, ...prints].map((part) => part ?? "-").join(" ")}`;
}
