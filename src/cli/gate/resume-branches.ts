import type { ChatRequest } from "../../engine.ts";
import {
  callMessages,
  mannerOf,
  ownCalls,
  type ScriptedConversation,
  user,
} from "./resume-conversation.ts";
import type { Claim, ResumeAct, ResumeStep, ScriptWriter } from "./resume-script.ts";
import { longText, resumeSystem, resumeTurns } from "./resume-turns.ts";

/** Where a prompt that is long enough has a state kept. */
const cutRows = 2048;
/** It is kept where no mark is so near. */
const longTokensMin = cutRows + 300;

/** What becomes of a conversation besides its next turn, once it has some turns. */
export async function writeBranches(
  writer: ScriptWriter,
  conversation: ScriptedConversation,
): Promise<ResumeAct[]> {
  const acts: ResumeAct[] = [];
  const act = async (name: string, ...asked: readonly (readonly [ChatRequest, Claim])[]) => {
    const steps = [];
    for (const [request, claim] of asked) steps.push(await writer.write(request, claim));
    acts.push({ name, steps });
  };
  const { last, talk, starts } = conversation;
  const { request } = last;
  const before = (turn: number) => talk.slice(0, starts.at(turn));
  const asking = (manner: number, turn: number, text: string): readonly [ChatRequest, Claim] => {
    const asked = { ...mannerOf(manner), messages: [...before(turn), user(text)] };
    return [asked, { others: writer.otherwise(asked) }];
  };
  const again = { others: writer.later(request) };
  await act("resent", [request, again]);
  const other = conversation.steps.findLast(
    (step) => thinks(step.request) !== thinks(request),
  )!.request;
  await act("earlier turn resent", [other, { others: writer.later(other) }]);
  await act("regenerated", [{ ...request, temperature: 1, seed: 4711 }, again]);
  await act("last turn edited", asking(0, -1, "Which of the two numbers was larger?"));
  await act("turn before deleted", asking(1, -2, resumeTurns[starts.length - 1]!.text));
  const middle = -Math.ceil(starts.length / 2);
  await act(
    "two forks at once",
    asking(3, middle, "Tell it again, please."),
    asking(2, middle, "And what came after that?"),
  );
  acts.push({ ...acts.pop()!, goesBack: true });
  await act("another conversation", asking(4, 0, "How do I get to the harbour?"));
  await act("thoughts repeated", thoughtsRepeated(conversation));
  return acts;
}

const thinks = ({ templateKwargs }: ChatRequest) => templateKwargs?.["enable_thinking"];

/** A turn that repeats a reply word by word goes on from the reply's own state. */
function thoughtsRepeated({ steps, starts, talk }: ScriptedConversation): [ChatRequest, Claim] {
  const { promptIds, reply } = steps[0]!;
  const { content, reasoning } = reply;
  const calls = ownCalls(resumeTurns[0]!, reply);
  const said = { role: "assistant", content, reasoning_content: reasoning };
  const turn = calls.length > 0 ? callMessages(calls, reply) : [said, user("Thank you.")];
  const messages = [...talk.slice(0, starts[0]! + 1), { ...turn[0]!, ...said }, ...turn.slice(1)];
  return [{ ...mannerOf(6), messages }, { others: [promptIds] }];
}

/** A long text that is edited near its end: its beginning has a state in the middle. */
export async function writeLong(writer: ScriptWriter): Promise<ResumeAct[]> {
  const asked = (sentences: number, question: string): ChatRequest => ({
    ...mannerOf(6),
    messages: [resumeSystem, user(`${longText(sentences)} ${question}`)],
  });
  let sentences = 64;
  const question = "Which note is the first?";
  while (writer.promptOf(asked(sentences, question)).length < longTokensMin) sentences += 8;
  const request = asked(sentences, question);
  const edited = asked(sentences, "Who saw the kite?");
  const first = await writer.write(request, { others: writer.otherwise(request) });
  return [
    { name: "long text", steps: [first] },
    { name: "long text edited", steps: [await writer.write(edited, { known: cutRows })] },
  ];
}

/** A reply that is interrupted: it would be long, and is text from its first token on. */
export async function writeInterrupted(writer: ScriptWriter): Promise<ResumeStep> {
  const messages = [resumeSystem, user("Tell me a long story about a boat.")];
  return await writer.write({ ...mannerOf(6), messages, ignoreEos: true }, {});
}
