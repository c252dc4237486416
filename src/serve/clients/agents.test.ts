import { Agent, OpenAIProvider, Runner, tool } from "@openai/agents";
import { afterAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { addCall, listenScripted } from "./listening.cases.ts";

const scripted = await listenScripted();
afterAll(async () => await scripted[Symbol.asyncDispose]());

const add = tool({
  name: "add",
  description: "Adds two numbers",
  parameters: z.object({ a: z.number(), b: z.number() }),
  execute: async ({ a, b }) => String(a + b),
});

const agent = new Agent({ name: "Clerk", instructions: "Add.", model: "nano", tools: [add] });

describe.each([
  ["chat completions", false],
  ["responses", true],
])("over %s", (_, useResponses) => {
  const modelProvider = new OpenAIProvider({
    baseURL: scripted.baseUrl,
    apiKey: "none",
    useResponses,
  });
  const runner = new Runner({ modelProvider, tracingDisabled: true });

  test("an agent calls its tool and answers", async () => {
    scripted.say(`Sum.\n</think>\n\n${addCall(1, 2)}`, "Easy.\n</think>\n\nIt is 3.");
    const result = await runner.run(agent, "1 + 2?");
    expect(result.finalOutput).toBe("It is 3.");
    const outputs = result.newItems.filter(({ type }) => type === "tool_call_output_item");
    expect(outputs.map((item) => "output" in item && item.output)).toEqual(["3"]);
  });

  test("the same, streamed", async () => {
    scripted.say(`Sum.\n</think>\n\n${addCall(1, 2)}`, "Easy.\n</think>\n\nIt is 3.");
    const result = await runner.run(agent, "1 + 2?", { stream: true });
    let text = "";
    for await (const piece of result.toTextStream()) text += piece;
    await result.completed;
    expect(text).toBe("It is 3.");
    expect(result.finalOutput).toBe("It is 3.");
  });

  test("an agent whose answer has a form", async () => {
    scripted.say('\n</think>\n\n{"city":"Oslo","days":3}');
    const outputType = z.object({ city: z.string(), days: z.number() });
    const planner = new Agent({
      name: "Planner",
      instructions: "Plan.",
      model: "nano",
      outputType,
    });
    const { finalOutput } = await runner.run(planner, "Where, and for how long?");
    expect(finalOutput).toEqual({ city: "Oslo", days: 3 });
  });

  test("an agent hands over to another", async () => {
    const handOver = "<tool_call>\n<function=transfer_to_Clerk>\n</function>\n</tool_call>";
    scripted.say(`\n</think>\n\n${handOver}`, "\n</think>\n\nAt your service.");
    const front = Agent.create({ name: "Front", model: "nano", handoffs: [agent] });
    const result = await runner.run(front, "Somebody who can add, please.");
    expect(result.finalOutput).toBe("At your service.");
    expect(result.lastAgent!.name).toBe("Clerk");
  });
});
