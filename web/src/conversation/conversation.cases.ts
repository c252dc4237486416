import type { Conversation, Message, Reply, UserMessage } from "./message.ts";
import { plainSettings } from "./settings.ts";

export const blank: Conversation = {
  id: "c",
  title: "",
  updatedSeconds: 1,
  settings: plainSettings,
  messages: [],
  leaf: null,
};

export const user = (id: string, parent: string | null, text: string = id): UserMessage => ({
  role: "user",
  id,
  parent,
  text,
  createdSeconds: 2,
});

export function reply(id: string, parent: string, changes: Partial<Reply> = {}): Reply {
  return {
    role: "assistant",
    id,
    parent,
    createdSeconds: 3,
    text: id,
    reasoning: "",
    toolCalls: [],
    ending: "stop",
    error: null,
    figures: {},
    ...changes,
  };
}

/** With all fields that there can be. */
export const fullReply: Reply = reply("full", "u", {
  reasoning: "hm",
  toolCalls: [{ id: "call_1", name: "f", arguments: '{"a":1}' }],
  ending: "failed",
  error: "Gone.",
  figures: {
    promptTokens: 5,
    cachedTokens: 4,
    replyTokens: 3,
    reasoningTokens: 1,
    prefillMs: 1.5,
    decodeMs: 2.5,
    tokensPerSecond: 10,
    cacheMissReason: "off",
    rounds: 2,
    drafted: 4,
    accepted: 1,
    tokensPerRound: 1.5,
    tokenSha: "0123456789ab",
    seed: 7,
  },
});

export const ids = (messages: readonly Message[]): string[] => messages.map(({ id }) => id);
