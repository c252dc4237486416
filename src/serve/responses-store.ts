import { DeltafoldError } from "../errors.ts";
import { storedResponseBytesMax, storedResponsesMax } from "../limits.ts";
import type { ResponseItem } from "./responses-items.ts";

/** A response as it is sent. */
export interface ResponseObject {
  readonly id: string;
  readonly output: readonly ResponseItem[];
  readonly [field: string]: unknown;
}

export interface StoredResponse {
  readonly response: ResponseObject;
  /** The whole conversation that it answered, earlier responses among it: those may be gone. */
  readonly input: readonly ResponseItem[];
  /** The digest of the key that asked for it; null where none was needed. Others don't find it. */
  readonly owner: string | null;
}

/** The newest responses, for requests that go on from them. In memory: a restart forgets them. */
export class ResponseStore {
  readonly #responsesMax: number;
  readonly #bytesMax: number;
  /** By id, the oldest first. */
  readonly #stored = new Map<string, StoredResponse & { readonly bytes: number }>();
  #bytes = 0;

  /** @param bytesMax of all of them; the length of their JSON counts */
  constructor(
    responsesMax: number = storedResponsesMax,
    bytesMax: number = storedResponseBytesMax,
  ) {
    this.#responsesMax = responsesMax;
    this.#bytesMax = bytesMax;
  }

  /** Drops the oldest where there is no room. One that takes more than all may isn't kept. */
  add({ response, input, owner }: StoredResponse): void {
    // What several have in common is counted for each: they go one by one.
    const bytes = JSON.stringify(response).length + JSON.stringify(input).length;
    if (bytes > this.#bytesMax) return;
    this.#stored.set(response.id, { response, input, owner, bytes });
    this.#bytes += bytes;
    for (const oldest of this.#stored.keys()) {
      if (this.#stored.size <= this.#responsesMax && this.#bytes <= this.#bytesMax) break;
      this.#drop(oldest);
    }
  }

  /** @throws DeltafoldError with status 404 */
  get(id: string, owner: string | null): StoredResponse {
    const stored = this.#ofOwner(id, owner);
    if (stored) return stored;
    throw notStored(id, "response_not_found", "response_id");
  }

  /**
   * The conversation up to the end of a response.
   * @throws DeltafoldError with status 404
   */
  conversation(id: string, owner: string | null): ResponseItem[] {
    const stored = this.#ofOwner(id, owner);
    if (!stored) throw notStored(id, "previous_response_not_found", "previous_response_id");
    return [...stored.input, ...stored.response.output];
  }

  /** @throws DeltafoldError with status 404 */
  delete(id: string, owner: string | null): void {
    this.get(id, owner);
    this.#drop(id);
  }

  #ofOwner(id: string, owner: string | null): StoredResponse | null {
    const stored = this.#stored.get(id);
    return stored?.owner === owner ? stored : null;
  }

  #drop(id: string): void {
    this.#bytes -= this.#stored.get(id)!.bytes;
    this.#stored.delete(id);
  }
}

function notStored(id: string, code: string, param: string): DeltafoldError {
  const message = `No response ${JSON.stringify(id)} is stored here.`;
  return new DeltafoldError(code, message, { status: 404, param });
}
