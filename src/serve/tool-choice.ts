import { z } from "zod";
import type { ToolSpec } from "../engine.ts";
import { InputError } from "../errors.ts";
import { toolsMax } from "../limits.ts";
import { list } from "./fields.ts";
import type { Form } from "./grammar-fields.ts";

/** One tool, by its name. */
interface NamedTool {
  readonly type: "function";
  readonly function: { readonly name: string };
}

/** Some of the tools, of which one has to be called where they are required. */
interface AllowedTools {
  readonly type: "allowed_tools";
  readonly allowed_tools: {
    readonly mode: "auto" | "required";
    readonly tools: readonly NamedTool[];
  };
}

export type ToolChoice = NamedTool | AllowedTools | "none" | "auto" | "required";

const named: z.ZodType<NamedTool> = z.object({
  type: z.literal("function"),
  function: z.object({ name: z.string() }),
});
const allowed: z.ZodType<AllowedTools> = z.object({
  type: z.literal("allowed_tools"),
  allowed_tools: z.object({
    mode: z.enum(["auto", "required"]),
    tools: list(named),
  }),
});

export const toolChoice: z.ZodType<ToolChoice> = z.union(
  [z.enum(["none", "auto", "required"]), named, allowed],
  { error: '"none", "auto", "required", a function, or allowed tools' },
);

/** What a choice of tools makes of a request. */
export interface ChosenTools {
  /** Offered to the model; null for none. */
  readonly tools: readonly ToolSpec[] | null;
  /** What the reply may be: calls and nothing else; null: anything. */
  readonly form: Form | null;
}

/**
 * @param parallel whether there may be several calls
 * @throws InputError where there are too many tools, the choice names a tool that isn't offered, or needs one where none is
 */
export function chooseTools(
  choice: ToolChoice | null | undefined,
  tools: readonly ToolSpec[],
  parallel: boolean,
): ChosenTools {
  if (tools.length > toolsMax) {
    throw new InputError(`At most ${toolsMax} tools are read.`, "tools", "too_many");
  }
  if (choice === "none") return { tools: null, form: null };
  const offered = tools.length > 0 ? tools : null;
  if (choice === null || choice === undefined || choice === "auto") {
    return { tools: offered, form: null };
  }
  if (!offered) throw new InputError("tool_choice needs tools.", "tool_choice");
  const calls = (of: readonly ToolSpec[]): Form => {
    return { spec: { kind: "calls", tools: of, parallel }, param: "tool_choice" };
  };
  if (typeof choice === "string") return { tools: offered, form: calls(offered) };
  if (choice.type === "function") {
    return { tools: offered, form: calls(theNamed(offered, [choice.function.name])) };
  }
  const { mode, tools: names } = choice.allowed_tools;
  const some = theNamed(
    offered,
    names.map((each) => each.function.name),
  );
  return { tools: some, form: mode === "required" ? calls(some) : null };
}

function theNamed(tools: readonly ToolSpec[], names: readonly string[]): ToolSpec[] {
  if (names.length === 0) throw new InputError("tool_choice allows no tool.", "tool_choice");
  const byName = new Map(tools.toReversed().map((tool) => [tool.function.name, tool]));
  return [...new Set(names)].map((name) => {
    const found = byName.get(name);
    if (found) return found;
    throw new InputError(
      `tool_choice names ${JSON.stringify(name)}, which is not among the tools.`,
      "tool_choice",
    );
  });
}
