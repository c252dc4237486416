import { expect, test } from "vitest";
import type { ToolSpec } from "../engine.ts";
import { toolsMax } from "../limits.ts";
import { parseChat } from "./chat-request.ts";
import { hello } from "./http.cases.ts";

const tool = (name: string): ToolSpec => ({ type: "function", function: { name } });
const tools = ["look", "write", "run"].map(tool);
const [look, write] = tools as [ToolSpec, ToolSpec];
const named = (name: string) => ({ type: "function", function: { name } });
const allowed = (mode: string, ...names: string[]) => ({
  type: "allowed_tools",
  allowed_tools: { mode, tools: names.map(named) },
});

const chosen = (fields: object) => {
  const { request, form } = parseChat({ messages: hello, ...fields });
  return [request.tools, form];
};

test.each([
  [undefined, tools, null],
  [null, tools, null],
  ["auto", tools, null],
  ["none", null, null],
  ["required", tools, tools],
  [named("write"), tools, [write]],
  [allowed("auto", "write", "look"), [write, look], null],
  [allowed("required", "look"), [look], [look]],
])("%j offers and requires", (tool_choice, offered, required) => {
  for (const parallel_tool_calls of [true, false, null]) {
    const parallel = parallel_tool_calls ?? true;
    const spec = { kind: "calls", tools: required, parallel };
    const form = required && { spec, param: "tool_choice" };
    expect(chosen({ tools, tool_choice, parallel_tool_calls })).toEqual([offered, form]);
  }
});

test("a tool that is named twice is offered once; of two with a name the first counts", () => {
  const twice = allowed("auto", "look", "write", "look");
  const other = { ...look, function: { name: "look", description: "Another." } };
  expect(chosen({ tools: [...tools, other], tool_choice: twice })).toEqual([[look, write], null]);
});

test("no tools, and nothing to choose", () => {
  for (const none of [{}, { tools: null }, { tools: [] }, { tools: [], tool_choice: "auto" }]) {
    expect(chosen(none)).toEqual([null, null]);
  }
});

test.each([
  [{ tool_choice: "required" }, "tool_choice", "needs tools"],
  [{ tools: Array(toolsMax + 1).fill(tool("a")) }, "tools", `At most ${toolsMax} tools`],
  [{ tools: [], tool_choice: named("look") }, "tool_choice", "needs tools"],
  [{ tools, tool_choice: named("fly") }, "tool_choice", '"fly", which is not among'],
  [{ tools, tool_choice: allowed("auto", "look", "fly") }, "tool_choice", '"fly"'],
  [{ tools, tool_choice: allowed("auto") }, "tool_choice", "allows no tool"],
  [{ tools, tool_choice: allowed("never", "look") }, "tool_choice", "must be"],
  [{ tools, tool_choice: "look" }, "tool_choice", 'not "look"'],
  [{ tools, tool_choice: 5 }, "tool_choice", "not 5"],
  [{ tools, tool_choice: { type: "function" } }, "tool_choice", "must be"],
  [{ tools, parallel_tool_calls: 0 }, "parallel_tool_calls", "true or false"],
  [
    { tools, tool_choice: "required", response_format: { type: "json_object" } },
    "tool_choice",
    "can't have another form",
  ],
  [{ tools, tool_choice: "required", ignore_eos: true }, "ignore_eos", "eos ends"],
  [{ guided_regex: "a", ignore_eos: true }, "ignore_eos", "eos ends"],
])("%j is refused", (fields, param, words) => {
  expect(() => chosen(fields)).toThrow(
    expect.objectContaining({ param, status: 400, message: expect.stringContaining(words) }),
  );
});
