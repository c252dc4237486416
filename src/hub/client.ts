import type { SetAlarm } from "../clock.ts";
import { jsonFileBytesMax } from "../limits.ts";
import { errorOf } from "./answers.ts";
import { Faults, PassingFault, type Wait } from "./faults.ts";
import { type FileBody, startOf, textOf } from "./file-body.ts";
import { HubError } from "./hub-error.ts";
import { type HubFile, type HubListing, parseListing } from "./listing.ts";
import { type HubName, mainRevision } from "./names.ts";
import { bodyOf, type HubAccess, requestHub } from "./request.ts";
import { StallWatch } from "./stall.ts";

/** Time, as it passes for a client. */
export interface HubTime {
  readonly setAlarm: SetAlarm;
  readonly wait: Wait;
}

/** One of the times that something is asked for. */
export interface Attempt {
  /** Ends it: the user's will, or too little came. */
  readonly signal: AbortSignal;
  readonly watch: StallWatch;
  readonly faults: Faults;
}

/** Asks a hub for models' files. What fails and may pass is asked again. */
export class HubClient {
  readonly access: HubAccess;
  readonly #time: HubTime;

  constructor(access: HubAccess, time: HubTime) {
    this.access = access;
    this.#time = time;
  }

  /** The files of a model. @throws HubError */
  async list(name: HubName, signal: AbortSignal): Promise<HubListing> {
    const { repo } = name;
    const what = `the list of ${repo}'s files`;
    const revision = encodeURIComponent(name.revision ?? mainRevision);
    const url = this.#url(`api/models/${repo}/revision/${revision}?blobs=true`);
    const text = await this.retried(what, signal, async (attempt) => {
      const response = await this.#ask(url, name, {}, attempt);
      return await textOf(attempt.watch.watched(bodyOf(response)), jsonFileBytesMax);
    });
    if (text === null) {
      throw new HubError("hub_listing", `${what} is longer than ${jsonFileBytesMax} bytes.`);
    }
    return parseListing(name, text);
  }

  /**
   * A file's bytes from `offset` on, or from 0 where the server knows no parts.
   * @throws PassingFault, HubError
   */
  async open(
    { repo, commit }: HubListing,
    file: HubFile,
    offset: number,
    attempt: Attempt,
  ): Promise<FileBody> {
    const path = file.path.split("/").map(encodeURIComponent).join("/");
    const url = this.#url(`${repo}/resolve/${commit}/${path}`);
    const headers = offset > 0 ? { range: `bytes=${offset}-` } : {};
    const response = await this.#ask(url, { repo, revision: commit }, headers, attempt);
    try {
      const start = startOf(response, file, offset);
      return { start, pieces: attempt.watch.watched(bodyOf(response)) };
    } catch (error) {
      await response.body?.cancel();
      throw error;
    }
  }

  /**
   * Tries until there is a result, or a fault that doesn't pass.
   * @param what is asked for, for messages
   * @throws HubError, and what else `attempt` throws but PassingFault
   */
  async retried<T>(
    what: string,
    signal: AbortSignal,
    attempt: (attempt: Attempt) => Promise<T>,
    onFault: (fault: PassingFault) => void = () => {},
  ): Promise<T> {
    const faults = new Faults(what, this.#time.wait);
    for (;;) {
      try {
        using watch = new StallWatch(this.#time.setAlarm);
        return await attempt({ signal: AbortSignal.any([signal, watch.signal]), watch, faults });
      } catch (error) {
        if (error instanceof PassingFault) onFault(error);
        await faults.after(error, signal);
      }
    }
  }

  /** An answer that is a success. */
  async #ask(
    url: URL,
    name: HubName,
    headers: Readonly<Record<string, string>>,
    { signal }: Attempt,
  ): Promise<Response> {
    const { response, own } = await requestHub(this.access, url, headers, signal);
    if (response.status === 200 || response.status === 206) return response;
    await response.body?.cancel();
    throw errorOf(response, own, this.access, name);
  }

  /** An endpoint may be a path on its host. */
  #url(path: string): URL {
    return new URL(`${this.access.endpoint.href.replace(/\/$/, "")}/${path}`);
  }
}
