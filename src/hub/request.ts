import { PassingFault } from "./faults.ts";
import { HubError } from "./hub-error.ts";

/** How a hub is reached. */
export interface HubAccess {
  readonly endpoint: URL;
  readonly token: string | null;
  readonly userAgent: string;
}

const redirectsMax = 5;

/** An answer, and whether it is the hub's own rather than that of a server it sent us to. */
interface Answer {
  readonly response: Response;
  readonly own: boolean;
}

/**
 * Asks the hub, and whom it sends us to. Those get no token.
 * @param signal ends the request, and the reading of what it brings
 * @throws PassingFault where no connection came about; HubError for a redirect that leads nowhere
 */
export async function requestHub(
  access: HubAccess,
  url: URL,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<Answer> {
  let target = url;
  for (let redirects = 0; redirects <= redirectsMax; redirects++) {
    const own = target.origin === access.endpoint.origin;
    const response = await ask(target, signal, {
      ...headers,
      "user-agent": access.userAgent,
      // Bytes as they are: lengths and ranges count these.
      "accept-encoding": "identity",
      ...(own && access.token !== null && { authorization: `Bearer ${access.token}` }),
    });
    const location = response.headers.get("location");
    if (response.status < 300 || response.status > 399 || location === null) {
      return { response, own };
    }
    await response.body?.cancel();
    target = redirected(target, location);
  }
  throw new HubError("hub_redirects", `${url}: the hub redirects more than ${redirectsMax} times.`);
}

/** @throws HubError where it leads away from HTTP, or from an encrypted connection to an open one */
function redirected(from: URL, location: string): URL {
  const to = URL.parse(location, from);
  if (to && (to.protocol === "https:" || to.protocol === from.protocol)) return to;
  throw new HubError(
    "hub_redirects",
    `${from.origin} redirects to ${to?.origin ?? JSON.stringify(location)}, which is not followed.`,
  );
}

async function ask(
  url: URL,
  signal: AbortSignal,
  headers: Readonly<Record<string, string>>,
): Promise<Response> {
  try {
    return await fetch(url, { headers, signal, redirect: "manual" });
  } catch (error) {
    throw connectionFault(error, `${url.host} can't be reached`);
  }
}

/** The body of an answer in pieces. @throws PassingFault where the connection breaks */
export async function* bodyOf(response: Response): AsyncGenerator<Uint8Array> {
  if (response.body === null) return;
  try {
    yield* response.body;
  } catch (error) {
    throw connectionFault(error, "the connection broke");
  }
}

/** `fetch` has a TypeError for all that goes wrong on the way, with the reason behind it. */
function connectionFault(error: unknown, what: string): unknown {
  if (!(error instanceof TypeError)) return error;
  const { cause } = error;
  const code = cause instanceof Error && "code" in cause ? ` (${cause.code})` : "";
  return new PassingFault(`${what}${code}`, null, error);
}
