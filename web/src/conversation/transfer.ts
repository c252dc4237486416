/** One JSON file with conversations, for another browser or for keeping. */
import { isRecord } from "../../../src/json.ts";
import type { Conversation } from "./message.ts";
import { checkConversation } from "./schema.ts";

const format = "deltafold-conversations";
const version = 1;

/** A file that can't be imported, and why. */
export class ImportError extends Error {}

/** The file's text in parts: all conversations together may be longer than a string can be. */
export function exportedParts(conversations: readonly Conversation[]): string[] {
  const head = JSON.stringify({ format, version });
  return [
    `${head.slice(0, -1)},"conversations":[`,
    ...conversations.map((each, at) => (at === 0 ? "\n" : ",\n") + JSON.stringify(each)),
    "\n]}\n",
  ];
}

/**
 * All of a file's conversations, or none of them.
 * @throws ImportError naming what is wrong with the file
 */
export function imported(text: string): readonly Conversation[] {
  const file = parsed(text);
  if (!isRecord(file) || file["format"] !== format) {
    throw new ImportError("The file doesn't hold conversations that were exported here.");
  }
  if (file["version"] !== version) {
    throw new ImportError("The file is of another version of this page.");
  }
  const { conversations } = file;
  if (!Array.isArray(conversations)) {
    throw new ImportError("The file has no list of conversations.");
  }
  return conversations.map((value, at) => {
    const checked = checkConversation(value);
    if (typeof checked !== "string") return checked;
    throw new ImportError(`Conversation ${at + 1} of the file: ${checked}.`);
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new ImportError("The file isn't JSON.");
  }
}
