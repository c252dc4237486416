/** Checks conversations that come from a file. */
import * as z from "zod/mini";
import type { Conversation, Figures, Message } from "./message.ts";
import { faultOfTools, numberRules, type Settings } from "./settings.ts";

// Otherwise zod tries to compile code, which the page's policy forbids.
z.config({ jitless: true });

const text = z.string({ error: "must be text" });
const name = z.string({ error: "must be text" }).check(z.minLength(1, "must not be empty"));
const seconds = z.number({ error: "must be seconds since 1970" });
const amount = z.optional(z.number({ error: "must be a number" }));

const figures = z.object({
  promptTokens: amount,
  cachedTokens: amount,
  replyTokens: amount,
  reasoningTokens: amount,
  prefillMs: amount,
  decodeMs: amount,
  tokensPerSecond: amount,
  cacheMissReason: z.optional(text),
  rounds: amount,
  drafted: amount,
  accepted: amount,
  tokensPerRound: amount,
  tokenSha: z.optional(text),
  seed: amount,
}) satisfies z.ZodMiniType<{ [Name in keyof Figures]?: Figures[Name] | undefined }>;

const placed = { id: name, parent: z.nullable(name), createdSeconds: seconds };

const message = z.discriminatedUnion(
  "role",
  [
    z.object({ ...placed, role: z.literal("user"), text }),
    z.object({ ...placed, role: z.literal("tool"), callId: text, text }),
    z.object({
      ...placed,
      role: z.literal("assistant"),
      text,
      reasoning: text,
      toolCalls: z.array(z.object({ id: text, name: text, arguments: text })),
      ending: z.enum(["stop", "length", "tool_calls", "stopped", "failed"]),
      error: z.nullable(text),
      figures,
    }),
  ],
  { error: "must be a message of user, assistant or tool" },
);

const numbers = Object.fromEntries(
  numberRules.map(({ name, min, max }) => [
    name,
    z.nullable(z.number().check(z.minimum(min), z.maximum(max))),
  ]),
);

const settings = z.object({
  ...numbers,
  systemPrompt: text,
  thinking: z.nullable(z.boolean()),
  drafts: z.boolean(),
  tools: z.string().check(z.refine((tools) => faultOfTools(tools) === null, "must be tools")),
});

const conversation = z
  .object({
    id: name,
    title: text,
    updatedSeconds: seconds,
    settings,
    messages: z.array(message),
    leaf: z.nullable(name),
  })
  .check(
    z.refine(({ messages }) => areInOrder(messages as Message[]), {
      error: "must have each message once, behind its parent",
      path: ["messages"],
    }),
    z.refine(({ messages, leaf }) => leafIsThere(messages as Message[], leaf), {
      error: "must name a message",
      path: ["leaf"],
    }),
  );

/** A checked conversation, or where its first fault is and what it must be. */
export function checkConversation(value: unknown): Conversation | string {
  const { data, error } = conversation.safeParse(value);
  if (data) return data as unknown as Conversation;
  const [issue] = error!.issues;
  return `${issue!.path.join(".")} ${issue!.message}`.trim();
}

/** Settings as they were kept; null where they are of another time or were tampered with. */
export function checkSettings(value: unknown): Settings | null {
  return (settings.safeParse(value).data as Settings | undefined) ?? null;
}

function areInOrder(messages: readonly Message[]): boolean {
  const seen = new Set<string>();
  return messages.every(({ id, parent }) => {
    const fits = !seen.has(id) && (parent === null || seen.has(parent));
    seen.add(id);
    return fits;
  });
}

function leafIsThere(messages: readonly Message[], leaf: string | null): boolean {
  return leaf === null ? messages.length === 0 : messages.some(({ id }) => id === leaf);
}
