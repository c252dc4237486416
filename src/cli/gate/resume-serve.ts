import type { ChatRequest } from "../../engine.ts";
import type { Reply } from "../../stream.ts";
import type { ResumeEngine } from "./resume-engine.ts";

/** A reply with what is behind it. */
export interface ServedReply extends Reply {
  /** A hash of the drafter's context. */
  readonly context: string;
}

/** Replies to requests that were served together. */
export interface Served {
  readonly replies: readonly ServedReply[];
  /** Rows of their prompts that were computed, where nothing else was. */
  readonly computed: number;
}

/**
 * Serves requests that end by themselves, with their fingerprints.
 * @param whenEnded is called with the last end, before the engine does anything else
 */
export async function serveTogether(
  { engine, watch }: ResumeEngine,
  requests: readonly ChatRequest[],
  whenEnded: () => void = () => {},
): Promise<Served> {
  const rows = watch.promptRows;
  const earlier = watch.contexts.length;
  const streams = requests.map((request) => engine.chat({ ...request, fingerprint: true }));
  const ended: number[] = [];
  // Once all have begun, their prompts are computed; what comes after a reply waits for its end.
  const started = Promise.all(streams.map((stream) => stream.started)).then(
    () => watch.promptRows - rows,
  );
  const results = streams.map(async ({ result }, at) => {
    const reply = await result;
    if (ended.push(at) === streams.length) whenEnded();
    return reply;
  });
  const [computed, ...replies] = await Promise.all([started, ...results]);
  return {
    replies: replies.map((reply, at) => ({
      ...reply,
      context: watch.contexts[earlier + ended.indexOf(at)]!,
    })),
    computed,
  };
}
