/** Conversations are trees: an edited or repeated message begins a branch beside the first one. */
import type { Conversation, Message } from "./message.ts";

const titleCharsMax = 60;

/** The messages of the shown branch, the first one first. */
export function shownMessages({ messages, leaf }: Conversation): readonly Message[] {
  const byId = new Map(messages.map((message) => [message.id, message]));
  const shown: Message[] = [];
  for (let id = leaf; id !== null; ) {
    const message = byId.get(id)!;
    shown.push(message);
    id = message.parent;
  }
  return shown.reverse();
}

/** The branches at a message: itself and those that have the same parent, in their order. */
export function branchesAt({ messages }: Conversation, id: string): readonly Message[] {
  const message = messages.find((each) => each.id === id);
  return message ? messages.filter(({ parent }) => parent === message.parent) : [];
}

/** With a message behind its parent, and shown. The first one gives the conversation its title. */
export function withMessage(conversation: Conversation, message: Message): Conversation {
  const first = conversation.messages.length === 0 && message.role === "user";
  return {
    ...conversation,
    ...(first && conversation.title === "" && { title: titleOf(message.text) }),
    messages: [...conversation.messages, message],
    leaf: message.id,
    updatedSeconds: message.createdSeconds,
  };
}

/** With another version of a message that it has. */
export function withChanged(conversation: Conversation, message: Message): Conversation {
  const messages = conversation.messages.map((each) => (each.id === message.id ? message : each));
  return { ...conversation, messages };
}

/** Shows the branch of a message, down to what came last in it. */
export function showing(conversation: Conversation, id: string): Conversation {
  let leaf = id;
  // Children stand behind their parents, so one way through finds the latest of the latest.
  const parents = new Map(conversation.messages.map(({ id, parent }) => [id, parent]));
  for (const message of conversation.messages.toReversed()) {
    if (!descendsFrom(parents, message.id, id)) continue;
    leaf = message.id;
    break;
  }
  return { ...conversation, leaf };
}

function descendsFrom(
  parents: ReadonlyMap<string, string | null>,
  id: string,
  ancestor: string,
): boolean {
  for (let at: string | null = id; at !== null; at = parents.get(at) ?? null) {
    if (at === ancestor) return true;
  }
  return false;
}

/** A text's first line, cut where it is long. */
function titleOf(text: string): string {
  const [line = ""] = text.trim().split("\n", 1);
  return line.length > titleCharsMax ? `${line.slice(0, titleCharsMax - 1).trimEnd()}…` : line;
}
