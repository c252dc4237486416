/** What the hub's answers mean that are no success. */
import { PassingFault, RangeFault } from "./faults.ts";
import { HubError } from "./hub-error.ts";
import { type HubName, hubNameText, mainRevision } from "./names.ts";
import type { HubAccess } from "./request.ts";

/** What ends by itself: time-outs, rate limits, a server's own faults. */
const passing = (status: number): boolean => status >= 500 || [408, 425, 429].includes(status);

/**
 * The error of an answer.
 * @param own whether it is the hub's; others have what it sent us to, by links that expire
 */
export function errorOf(
  { status, headers }: Response,
  own: boolean,
  access: HubAccess,
  name: HubName,
): PassingFault | HubError {
  const who = own ? "the hub" : "the server that the hub named";
  if (status === 416) return new RangeFault(`${who} has no such range`);
  if (!own || passing(status)) {
    return new PassingFault(`${who} answered status ${status}`, retryAfterMs(headers));
  }
  return refusal(status, headers.get("x-error-code"), access, name);
}

function refusal(
  status: number,
  code: string | null,
  { endpoint, token }: HubAccess,
  name: HubName,
): HubError {
  const { repo, revision } = name;
  const login = "set HF_TOKEN, or log in with `hf auth login`";
  if (code === "GatedRepo") {
    const page = new URL(repo, endpoint);
    const how = token === null ? `then ${login}` : "with the account of your token";
    return new HubError("hub_gated", `${repo} is gated: accept its terms at ${page}, ${how}.`);
  }
  if (code === "RevisionNotFound") {
    return new HubError("hub_unknown", `${repo} has no revision ${revision ?? mainRevision}.`);
  }
  if (code === "EntryNotFound") {
    return new HubError(
      "hub_unknown",
      `${hubNameText(name)} lacks a file that the hub has listed.`,
    );
  }
  // Without an account, the hub says of models that aren't there what it says of private ones.
  if (status === 401 || status === 404 || code === "RepoNotFound") {
    const private_ =
      token === null
        ? `If it is private, ${login}.`
        : "If it is private, your token has no access to it, or has expired.";
    return new HubError("hub_unknown", `${endpoint.host} has no model ${repo}. ${private_}`);
  }
  return new HubError("hub_refused", `${endpoint.host} refuses ${repo} with status ${status}.`);
}

/** Of seconds, or of a date. */
function retryAfterMs(headers: Headers): number | null {
  const value = headers.get("retry-after");
  if (value === null) return null;
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return ms >= 0 ? ms : null;
}
