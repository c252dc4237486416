import { invariant } from "../../errors.ts";
import type { ResumeEngine } from "./resume-engine.ts";
import { differsAt, fedTokens, knownTokens } from "./resume-known.ts";
import type { PromptOf, ResumeStep } from "./resume-script.ts";
import { serveTogether } from "./resume-serve.ts";

/** What is heard of a reply before it is cancelled. */
const partsHeard = 6;
/** It would have gone on for so many tokens. */
const tokensMost = 400;

/**
 * Interrupts a reply, as a user does, and makes the step of the turn after it, which repeats what there
 * was of the reply.
 * @throws InvariantError where that is not the beginning of the whole reply
 */
export async function interruptedStep(
  opened: ResumeEngine,
  { request, promptIds, reply }: ResumeStep,
  promptOf: PromptOf,
): Promise<ResumeStep> {
  const stream = opened.engine.chat({ ...request, maxTokens: tokensMost });
  let parts = 0;
  for await (const _ of stream) if (++parts === partsHeard) break;
  const { ids, content, finishReason } = await stream.result;
  const both = Math.min(ids.length, reply.ids.length);
  invariant(finishReason === "cancelled", `an interrupted reply ended by ${finishReason}`);
  const at = differsAt(reply.ids.slice(0, both), ids.slice(0, both));
  invariant(at < 0, `token ${at} of an interrupted reply differs`);
  const turn = [
    { role: "assistant", content },
    { role: "user", content: "Please go on." },
  ];
  const next = { ...request, messages: [...request.messages, ...turn] };
  const { replies } = await serveTogether(opened, [{ ...next, cachePrompt: false }]);
  invariant(replies[0]!.cacheMiss === "off", "a reply without the cache had part of it");
  const nextIds = promptOf(next);
  const fed = fedTokens(nextIds, [[...promptIds, ...ids.slice(0, -1)]]);
  const known = Math.max(knownTokens(nextIds, [promptIds]), fed);
  return { request: next, promptIds: nextIds, known, knownAtOnce: known, reply: replies[0]! };
}
