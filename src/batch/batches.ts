/** The batches of a queue server. Each has a queue of its own, so that it can wait, pause and end alone. */
import { type Job, Queue } from "bullmq";
import type { Redis } from "ioredis";
import { systemClock } from "../clock.ts";
import { InputError } from "../errors.ts";
import { connectQueue, parseQueueUrl, warnOfRefusal } from "./connection.ts";
import type { BatchFile } from "./file-node.ts";
import type { Demands } from "./identity.ts";
import type { BatchRequest } from "./line.ts";
import type { BatchResult } from "./result.ts";

/** What all of our keys begin with. */
const prefix = "deltafold";
/** Requests that are sent to the queue at once. */
const addedAtOnce = 250;
const retryMs = 1000;

/** A batch as the queue server knows it. */
export interface BatchRecord {
  readonly id: string;
  /** Of the file. */
  readonly name: string;
  readonly requests: number;
  /** Lines that were left out. */
  readonly broken: number;
  readonly demands: Demands;
  /** How often a request is tried, and how many workers may be lost over it. */
  readonly attempts: number;
  /** Seconds since 1970. */
  readonly submitted: number;
  readonly cancelled: boolean;
}

export type SubmitOptions = Pick<BatchRecord, "demands" | "attempts">;

export interface RequestData extends BatchRequest {
  readonly line: number;
}

export type RequestJob = Job<RequestData, BatchResult>;
export type RequestQueue = Queue<RequestJob>;

/** How many requests of a batch are where. */
export interface BatchCounts {
  readonly waiting: number;
  /** Those that are tried again in a moment. */
  readonly delayed: number;
  readonly running: number;
  readonly done: number;
}

export class Batches implements AsyncDisposable {
  readonly client: Redis;
  readonly #registry: Queue<Job<BatchRecord>>;
  readonly #queues = new Map<string, RequestQueue>();
  readonly #warn: (message: string) => void;

  private constructor(client: Redis, warn: (message: string) => void) {
    this.client = client;
    this.#warn = warn;
    this.#registry = this.#open("batches");
  }

  /**
   * @param url of the server
   * @param warn hears of times in which it is gone
   * @throws InputError, QueueError
   */
  static async connect(url: string, warn: (message: string) => void): Promise<Batches> {
    return new Batches(await connectQueue(parseQueueUrl(url), warn), warn);
  }

  /** Of the batches that somebody submitted and nobody removed, the oldest first. */
  async list(): Promise<BatchRecord[]> {
    const jobs = await this.#registry.getJobs(["wait"], 0, -1, true);
    return jobs.map(({ data }) => data);
  }

  async find(id: string): Promise<BatchRecord | null> {
    return (await this.#registry.getJob(id))?.data ?? null;
  }

  /** @throws InputError for a batch that isn't there */
  async get(id: string, name: string): Promise<BatchRecord> {
    const found = await this.find(id);
    if (found) return found;
    throw new InputError(`${name} was not submitted to this queue, or its batch was removed.`);
  }

  /**
   * Submits a batch, or what is missing of one whose submission was cut short.
   * @param onAdded hears how many requests are there
   * @throws InputError for one that is there with other options
   */
  async submit(
    file: BatchFile,
    options: SubmitOptions,
    onAdded: (requests: number) => void,
  ): Promise<BatchRecord> {
    const record = await this.#record(file, options);
    const queue = this.queue(file.id);
    const attempts = {
      attempts: options.attempts,
      backoff: { type: "exponential", delay: retryMs },
    };
    let added = 0;
    let batch: Parameters<RequestQueue["addBulk"]>[0] = [];
    const flush = async () => {
      await queue.addBulk(batch);
      added += batch.length;
      batch = [];
      onAdded(added);
    };
    for await (const data of file.read()) {
      // A request that is there already stays as it is.
      batch.push({ name: "request", data, opts: { jobId: jobIdOf(data.line), ...attempts } });
      if (batch.length === addedAtOnce) await flush();
    }
    await flush();
    return record;
  }

  /** Drops what no worker has begun. What is done can still be had. */
  async cancel(record: BatchRecord): Promise<void> {
    const job = await this.#registry.getJob(record.id);
    await job?.updateData({ ...record, cancelled: true });
    await this.queue(record.id).drain(true);
  }

  /** Forgets a batch and its results. */
  async remove({ id }: BatchRecord): Promise<void> {
    await this.#registry.remove(id);
    await this.queue(id).obliterate({ force: true });
  }

  async counts(id: string): Promise<BatchCounts> {
    const types = ["wait", "delayed", "active", "completed"] as const;
    const counts = await this.queue(id).getJobCounts(...types);
    const { wait: waiting = 0, delayed = 0, active: running = 0, completed: done = 0 } = counts;
    return { waiting, delayed, running, done };
  }

  queue(id: string): RequestQueue {
    const queue = this.#queues.get(id) ?? this.#open(id);
    this.#queues.set(id, queue);
    return queue;
  }

  /** What opens queues of the same server elsewhere. */
  get options(): { readonly connection: Redis; readonly prefix: string } {
    return { connection: this.client, prefix };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#registry, ...this.#queues.values()].map((queue) => queue.close()));
    this.client.disconnect();
  }

  /** @throws InputError where it is there with other options */
  async #record(file: BatchFile, options: SubmitOptions): Promise<BatchRecord> {
    const found = await this.find(file.id);
    if (found?.cancelled) await this.remove(found);
    else if (found) {
      checkSame(file, found, options);
      return found;
    }
    const { id, name, requests, broken } = file;
    const submitted = systemClock.unixSeconds();
    const record = {
      ...{ id, name, requests, broken: broken.length },
      ...{ ...options, submitted, cancelled: false },
    };
    await this.#registry.add("batch", record, { jobId: id });
    return record;
  }

  #open<T extends Job>(name: string): Queue<T> {
    const queue = new Queue<T>(name, this.options);
    queue.on("error", (error) => warnOfRefusal(error, this.#warn));
    return queue;
  }
}

export const jobIdOf = (line: number): string => `line-${line}`;

function checkSame(
  file: BatchFile,
  { demands, attempts }: BatchRecord,
  asked: SubmitOptions,
): void {
  const text = (options: SubmitOptions) =>
    JSON.stringify([
      options.demands.build,
      options.demands.device,
      options.demands.weights,
      options.attempts,
    ]);
  if (text({ demands, attempts }) === text(asked)) return;
  throw new InputError(
    `${file.path} was submitted with other options already. Cancel it first, or leave them as they were.`,
  );
}
