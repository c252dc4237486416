/** What conversations are made of. All of it is plain data, as it is stored and exported. */
import type { Settings } from "./settings.ts";

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** JSON text of an object, as the model wrote it. */
  readonly arguments: string;
}

/** What the server told of a reply; what it didn't tell is absent. */
export interface Figures {
  readonly promptTokens?: number;
  readonly cachedTokens?: number;
  readonly replyTokens?: number;
  readonly reasoningTokens?: number;
  readonly prefillMs?: number;
  readonly decodeMs?: number;
  readonly tokensPerSecond?: number;
  readonly cacheMissReason?: string;
  readonly rounds?: number;
  readonly drafted?: number;
  readonly accepted?: number;
  readonly tokensPerRound?: number;
  readonly tokenSha?: string;
  /** With which it was asked for. */
  readonly seed?: number;
}

/**
 * How a reply ended: as the server said; `stopped` by the user or by leaving the page; or `failed`
 * with the message's error.
 */
export type Ending = "stop" | "length" | "tool_calls" | "stopped" | "failed";

interface Placed {
  readonly id: string;
  /** The message before it; null: it begins the conversation. */
  readonly parent: string | null;
  readonly createdSeconds: number;
}

export interface UserMessage extends Placed {
  readonly role: "user";
  readonly text: string;
}

/** What came of a tool call. */
export interface ToolMessage extends Placed {
  readonly role: "tool";
  readonly callId: string;
  readonly text: string;
}

export interface Reply extends Placed {
  readonly role: "assistant";
  readonly text: string;
  readonly reasoning: string;
  readonly toolCalls: readonly ToolCall[];
  readonly ending: Ending;
  readonly error: string | null;
  readonly figures: Figures;
}

export type Message = UserMessage | ToolMessage | Reply;

export interface Conversation {
  readonly id: string;
  readonly title: string;
  readonly updatedSeconds: number;
  readonly settings: Settings;
  /** Each behind its parent; those with the same parent are branches. */
  readonly messages: readonly Message[];
  /** The last message of the branch that is shown; null: there is none yet. */
  readonly leaf: string | null;
}
