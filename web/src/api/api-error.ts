import { isRecord } from "../../../src/json.ts";

/** What the server, or the way to it, had against a request. */
export class ApiError extends Error {
  /** Null where nobody answered. */
  readonly status: number | null;
  /** The server's word for what was wrong. */
  readonly code: string | null;

  constructor(message: string, status: number | null, code: string | null = null) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.code = code;
  }

  /** Whether a key is missing, or is the wrong one. */
  get wantsKey(): boolean {
    return this.status === 401;
  }
}

/** Of an answer whose status isn't 2xx. */
export async function refusalOf(response: Response): Promise<ApiError> {
  const text = await response.text().catch(() => "");
  try {
    return errorOf(JSON.parse(text), response.status);
  } catch {
    // A proxy's page, say.
    return new ApiError(`The server answered with status ${response.status}.`, response.status);
  }
}

/** Of an error object, as it comes in answers and in events. */
export function errorOf(body: unknown, status: number): ApiError {
  const error = isRecord(body) && isRecord(body["error"]) ? body["error"] : {};
  const { message, code } = error;
  return new ApiError(
    typeof message === "string" ? message : `The server failed with status ${status}.`,
    status,
    typeof code === "string" ? code : null,
  );
}
