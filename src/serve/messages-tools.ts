/** The tools of Anthropic's bodies, and which of them may be called, as chats have both. */
import { z } from "zod";
import type { ToolSpec } from "../engine.ts";
import { flag, list, name, text } from "./fields.ts";
import { givenObject, kindError } from "./messages-fields.ts";
import type { chooseTools } from "./tool-choice.ts";

const customTool = '"custom", since the server has no tools of its own';
const tool = z
  .object(
    {
      type: z.literal("custom", { error: customTool }).nullish(),
      name,
      description: text.nullish(),
      input_schema: givenObject,
    },
    { error: "a tool" },
  )
  .transform(({ name, description, input_schema: parameters }): ToolSpec => {
    const described = typeof description === "string" && { description };
    return { type: "function", function: { name, ...described, parameters } };
  });

export const toolsField: z.ZodType<ToolSpec[]> = list(tool);

/** What a body says of the calls that it wants. */
export interface MessagesToolChoice {
  /** As chats say it. */
  readonly choice: Parameters<typeof chooseTools>[0];
  readonly parallel: boolean;
}

const disable_parallel_tool_use = flag.nullish();
export const toolChoiceField: z.ZodType<MessagesToolChoice> = z
  .discriminatedUnion(
    "type",
    [
      z.object({ type: z.enum(["auto", "any", "none"]), disable_parallel_tool_use }),
      z.object({ type: z.literal("tool"), name: text, disable_parallel_tool_use }),
    ],
    { error: kindError("an object", "auto", "any", "tool", "none") },
  )
  .transform((given) => ({
    choice: chatChoice(given),
    parallel: !given.disable_parallel_tool_use,
  }));

type Given =
  | { readonly type: "auto" | "any" | "none" }
  | { readonly type: "tool"; readonly name: string };

function chatChoice(given: Given): MessagesToolChoice["choice"] {
  if (given.type === "tool") return { type: "function", function: { name: given.name } };
  return given.type === "any" ? "required" : given.type;
}
