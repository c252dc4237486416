import { Option } from "commander";

/** The flag of every command that speaks to a queue server. */
export interface QueueFlags {
  /** Its address, which may hold a password. */
  readonly queue: string;
}

/** Other users may see flags, but no variables. */
export const queueVariable = "DELTAFOLD_QUEUE_URL";

export const queueOption = (): Option =>
  new Option(
    "--queue <url>",
    "the Redis or Valkey server: redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE], or rediss://",
  )
    .env(queueVariable)
    .makeOptionMandatory();
