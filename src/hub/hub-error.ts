import { DeltafoldError } from "../errors.ts";

/** What the hub refuses, or doesn't do right; `code` says which. */
export class HubError extends DeltafoldError {
  constructor(code: string, message: string, cause?: unknown) {
    super(code, message, { status: 502, cause });
  }
}
