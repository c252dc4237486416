/** Tools as /v1/responses has them: without the object that chats put around a function. */
import { z } from "zod";
import type { ToolSpec } from "../engine.ts";
import { isRecord } from "../json.ts";
import type { JsonObject } from "./body.ts";
import { asGiven, flag, list, mapping, name, text } from "./fields.ts";
import { refuseTypes } from "./responses-unsupported.ts";
import { unsupported } from "./unsupported.ts";

/** A function that a model may call, in the order in which its keys came. */
export type ResponseTool = { readonly type: "function" } & ToolSpec["function"];

export const responseTool: z.ZodType<ResponseTool> = asGiven(
  z.object(
    {
      type: z.literal("function", { error: '"function"' }),
      name,
      description: text.nullish(),
      parameters: mapping.nullish(),
      strict: flag.nullish(),
    },
    { error: 'a tool of type "function"' },
  ),
);

interface NamedTool {
  readonly type: "function";
  readonly name: string;
}

interface AllowedTools {
  readonly type: "allowed_tools";
  readonly mode: "auto" | "required";
  readonly tools: readonly NamedTool[];
}

const named: z.ZodType<NamedTool> = z.object({ type: z.literal("function"), name });
const allowed: z.ZodType<AllowedTools> = z.object({
  type: z.literal("allowed_tools"),
  mode: z.enum(["auto", "required"]),
  tools: list(named),
});

export type ResponseToolChoice = NamedTool | AllowedTools | "none" | "auto" | "required";

export const responseToolChoice: z.ZodType<ResponseToolChoice> = z.union(
  [z.enum(["none", "auto", "required"]), named, allowed],
  { error: '"none", "auto", "required", a function, or allowed tools' },
);

/**
 * Tools that OpenAI runs itself, and those whose calls are no JSON.
 * @throws InputError naming the first that is offered or chosen
 */
export function refuseHostedTools({ tools, tool_choice: choice }: JsonObject): void {
  const typeOf = (value: unknown) => (isRecord(value) ? value["type"] : undefined);
  if (Array.isArray(tools)) refuseTypes(tools.map(typeOf), ["function"], "tools");
  const type = typeOf(choice);
  if (typeof type !== "string" || type === "function" || type === "allowed_tools") return;
  throw unsupported("tool_choice", `can't choose a tool of type ${JSON.stringify(type)}`);
}

export function chatTools(tools: readonly ResponseTool[]): ToolSpec[] {
  return tools.map(({ type, ...described }) => ({ type, function: described }));
}

/** The same choice, as chats say it. */
export function chatToolChoice(choice: ResponseToolChoice): object | string {
  if (typeof choice === "string") return choice;
  if (choice.type === "function") return chosen(choice);
  const { type, mode, tools } = choice;
  return { type, allowed_tools: { mode, tools: tools.map(chosen) } };
}

function chosen({ type, name: called }: z.infer<typeof named>): object {
  return { type, function: { name: called } };
}
