/** A conversation in Anthropic's blocks, as the messages that chats have. */
import { z } from "zod";
import type { ChatMessage } from "../engine.ts";
import { flag, list, text } from "./fields.ts";
import { blocks, givenObject, kindError } from "./messages-fields.ts";

const textBlock = z.object({ type: z.literal("text"), text });

/** Refused in the words that chats have for it. */
const unreadable = z
  .looseObject({ type: z.enum(["image", "document"]) })
  .transform((_, context) => {
    const message = 'a part of type "text", which is all that this model reads';
    context.addIssue({ code: "custom", message });
    return z.NEVER;
  });

const onlyText = blocks(
  z.discriminatedUnion("type", [textBlock, unreadable], { error: kindError("a block", "text") }),
);

const toolResult = z.object({
  type: z.literal("tool_result"),
  tool_use_id: text,
  content: onlyText.nullish(),
  is_error: flag.nullish(),
});
const userBlock = z.discriminatedUnion("type", [textBlock, toolResult, unreadable], {
  error: kindError("a block", "text", "tool_result"),
});

const toolUse = z.object({
  type: z.literal("tool_use"),
  id: text,
  name: text,
  input: givenObject,
});
const thinking = z.object({ type: z.literal("thinking"), thinking: text });
const redactedThinking = z.object({ type: z.literal("redacted_thinking") });
const modelBlock = z.discriminatedUnion(
  "type",
  [textBlock, toolUse, thinking, redactedThinking, unreadable],
  { error: kindError("a block", "text", "tool_use", "thinking", "redacted_thinking") },
);

const message = z.discriminatedUnion(
  "role",
  [
    z.object({ role: z.literal("user"), content: blocks(userBlock) }).transform(ofUser),
    z.object({ role: z.literal("assistant"), content: blocks(modelBlock) }).transform(ofModel),
    z.object({ role: z.literal("system"), content: onlyText }).transform((given) => [given]),
  ],
  { error: kindError("an object", "user", "assistant", "system") },
);

/** Each message as one or several of a chat. */
export const historyField: z.ZodType<ChatMessage[][]> = list(message);

/** Each block as a message: chats put a blank line between those that they begin with. */
export const systemField: z.ZodType<ChatMessage[]> = onlyText.transform((given) =>
  given.map((block) => ({ role: "system", content: [block] })),
);

/** Results come first, whatever stands beside them: they answer the calls before. */
function ofUser({ content }: { readonly content: z.infer<typeof userBlock>[] }): ChatMessage[] {
  const results = content.filter((block) => block.type === "tool_result");
  const said = content.filter((block) => block.type === "text");
  const isResult = results.length > 0 && said.length === 0;
  return [...results.map(ofResult), ...(isResult ? [] : [{ role: "user", content: said }])];
}

/** Chats have no field for a failure, so the text says it. */
function ofResult(result: z.infer<typeof toolResult>): ChatMessage {
  const written = (result.content ?? []).map((block) => block.text).join("");
  const saysSo = !result.is_error || /^\W*error/i.test(written);
  const content = saysSo ? written : `Error: ${written || "no output"}`;
  return { role: "tool", tool_call_id: result.tool_use_id, content };
}

function ofModel({ content }: { readonly content: z.infer<typeof modelBlock>[] }): ChatMessage[] {
  const thoughts = content.filter((block) => block.type === "thinking");
  const calls = content.filter((block) => block.type === "tool_use");
  const reasoning = thoughts.map((block) => block.thinking).join("\n\n");
  const turn = {
    role: "assistant",
    content: content.filter((block) => block.type === "text"),
    reasoning_content: thoughts.length > 0 ? reasoning : null,
    tool_calls: calls.map(({ id, name, input }) => ({
      id,
      type: "function",
      function: { name, arguments: input },
    })),
  };
  return [turn];
}
