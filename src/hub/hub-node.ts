import { packageVersion } from "../package-version-node.ts";
import { HubClient, type HubTime } from "./client.ts";
import { RepoCache } from "./repo-cache-node.ts";
import { type HubSettings, hubSettings } from "./settings-node.ts";
import { hubTime } from "./time-node.ts";

/** A hub, and the cache of what was pulled from it. */
export class Hub {
  readonly settings: HubSettings;
  readonly client: HubClient;
  readonly time: HubTime;

  constructor(settings: HubSettings, time: HubTime = hubTime) {
    const { endpoint, token } = settings;
    this.settings = settings;
    this.client = new HubClient(
      { endpoint, token, userAgent: `deltafold/${packageVersion()}` },
      time,
    );
    this.time = time;
  }

  /** The hub that the environment names. @throws InputError */
  static async open(): Promise<Hub> {
    return new Hub(await hubSettings(process.env));
  }

  /** A model's part of the cache. */
  cacheOf(repo: string): RepoCache {
    return new RepoCache(this.settings.cache, repo, this.settings.symlinks);
  }
}
