import { aligned, bytesText, type Line } from "../format.ts";
import type { BackendPlanReport, FoundPlan, PlanReport } from "./report.ts";

/** A report as aligned lines, a block for each backend. */
export function planText({ model, bits, plans }: PlanReport): string {
  const head: Line[] = [["model", bits === null ? model : `${model} in ${bits} bits`]];
  return `${aligned([head, ...plans.map(planLines)])}\n\nMiB and GiB are 2^20 and 2^30 bytes.`;
}

function planLines(plan: BackendPlanReport): Line[] {
  if ("missing" in plan) return [[plan.backend, plan.missing]];
  const { memory } = plan;
  const cache = memory.prompt_cache;
  return [
    [plan.backend, `on ${plan.device}`],
    ["fits", fitsText(plan)],
    ["context", contextText(plan)],
    ["streams", `${plan.streams} at once; one more takes ${bytesText(plan.stream_bytes)}`],
    [
      "weights",
      `${bytesText(memory.weights)}; as stored ${bytesText(plan.stored_bytes)}, of which a token reads ` +
        bytesText(plan.read_bytes_per_token),
    ],
    ["states", bytesText(memory.states)],
    [
      "KV",
      `${bytesText(memory.kv)} for ${plan.pages * 64} tokens of all streams and cached prompts; ` +
        `1024 tokens take ${bytesText(1024 * plan.kv_bytes_per_token)}`,
    ],
    ["workspace", bytesText(memory.workspace)],
    ["cache", cache > 0 ? `${bytesText(cache)} of cached states at most` : "no prompt cache"],
    ["total", totalText(plan)],
    ["drafter", drafterText(plan)],
  ];
}

function fitsText({ refusal, memory }: FoundPlan): string {
  if (refusal !== null) return `no. ${refusal}`;
  if (memory.available !== null) return "yes";
  return "as far as can be known: WebGPU doesn't tell how much memory a GPU has; --memory-gib does";
}

function contextText(plan: FoundPlan): string {
  const { context_tokens: tokens, context_default: byDefault, context_max: most } = plan;
  if (byDefault === null) return `${tokens} tokens; none fits`;
  const asked = tokens === byDefault ? "" : `${tokens} tokens; by default `;
  if (byDefault === most) return `${asked}${byDefault} tokens, as many as the model supports`;
  const why =
    plan.context_limit === null
      ? "Unless --kv-gib or --context say, KV takes 4 GiB."
      : `With 64 more: ${plan.context_limit}`;
  return `${asked}${byDefault} tokens of the ${most} that the model supports. ${why}`;
}

function totalText({ memory }: FoundPlan): string {
  const of = memory.available === null ? "" : ` of ${bytesText(memory.available)} available`;
  return bytesText(memory.total) + of;
}

function drafterText({ drafter }: FoundPlan): string {
  if (!drafter) return "none";
  const parts = [
    `${bytesText(drafter.weights)} weights`,
    `${bytesText(drafter.states)} features`,
    `${bytesText(drafter.kv)} KV`,
    `${bytesText(drafter.workspace)} workspace`,
  ];
  return `of all this ${parts.join(", ")}`;
}
