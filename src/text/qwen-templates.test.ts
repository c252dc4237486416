import { describe, expect, test } from "vitest";
import { InputError } from "../errors.ts";
import type { ChatMessage } from "./chat-messages.ts";
import { ChatTemplate, endsInOpenThink } from "./chat-template.ts";
import { qwenTemplate, type TemplateVersion } from "./qwen-templates.cases.ts";
import { effortKwargs } from "./reasoning-effort.ts";
import type { ToolSpec } from "./tool-calls.ts";

const versions: readonly TemplateVersion[] = ["3.5", "3.6", "3.8"];
const templates = {
  "3.5": ChatTemplate.fromSource(qwenTemplate("3.5"), "3.5.jinja"),
  "3.6": ChatTemplate.fromSource(qwenTemplate("3.6"), "3.6.jinja"),
  "3.8": ChatTemplate.fromSource(qwenTemplate("3.8"), "3.8.jinja"),
};

type Kwargs = Readonly<Record<string, unknown>>;

/** What a version makes of a conversation; 3.8 without an instruction on effort, unless one is asked for. */
function render(
  version: TemplateVersion,
  messages: readonly ChatMessage[],
  { tools = null, ...kwargs }: Kwargs & { readonly tools?: readonly ToolSpec[] | null } = {},
): string {
  const options = { reasoning_effort: "medium", ...kwargs };
  return templates[version].render(messages, { tools, addGenerationPrompt: true, kwargs: options });
}

const system = (content: string): ChatMessage => ({ role: "system", content });
const user = (content: string): ChatMessage => ({ role: "user", content });
const said = (content: string, reasoning?: string): ChatMessage => ({
  role: "assistant",
  content,
  ...(reasoning !== undefined && { reasoning_content: reasoning }),
});
const result = (content: string): ChatMessage => ({ role: "tool", content });
const calls = (content: string, ...written: (string | Record<string, unknown>)[]): ChatMessage => ({
  role: "assistant",
  content,
  tool_calls: written.map((each) => ({ function: { name: "find", arguments: each } })),
});

const thinking = "<|im_start|>assistant\n<think>\n";
const turn = (role: string, content: string) => `<|im_start|>${role}\n${content}<|im_end|>\n`;
const empty = "<think>\n\n</think>\n\n";

describe.each(versions)("Qwen%s", (version) => {
  test("no system prompt by default; contents are stripped as Python strips", () => {
    expect(render(version, [user(" \x1c\u3000Hi\u0085\n")])).toBe(turn("user", "Hi") + thinking);
    const [first, second] = [system("\n Be brief. "), user("Hi")];
    expect(render(version, [first, second])).toBe(
      turn("system", "Be brief.") + turn("user", "Hi") + thinking,
    );
    expect(render(version, [user("\ufeff")])).toBe(turn("user", "\ufeff") + thinking);
  });

  test("thinking is on, unless it is switched off", () => {
    const [on, off] = [true, false].map((each) => ({ enable_thinking: each }));
    expect(render(version, [user("Hi")], on)).toBe(turn("user", "Hi") + thinking);
    const without = render(version, [user("Hi")], off);
    expect(without).toBe(`${turn("user", "Hi")}<|im_start|>assistant\n${empty}`);
    expect(endsInOpenThink(without)).toBe(false);
  });

  test("small models think only where it is switched on", () => {
    const small = ChatTemplate.fromSource(qwenTemplate(version, "small"), "small.jinja");
    const open = (kwargs: Kwargs) =>
      endsInOpenThink(
        small.render([user("Hi")], { tools: null, addGenerationPrompt: true, kwargs }),
      );
    expect([open({}), open({ enable_thinking: null }), open({ enable_thinking: true })]).toEqual([
      false,
      false,
      true,
    ]);
  });

  test("tools are a line of JSON each, as Python writes it, before the system's text", () => {
    const fields = { b: 1.5, é: [], a: { x: true, y: null } };
    const tool: ToolSpec = {
      type: "function",
      function: { name: "find", description: 'Söker <"中">', parameters: fields },
    };
    const line =
      '{"type": "function", "function": {"name": "find", "description": "Söker <\\"中\\">", ' +
      '"parameters": {"b": 1.5, "é": [], "a": {"x": true, "y": null}}}}';
    const listed = `# Functions\n<tools>\n${line}\n${line}\n</tools>\n\nCall them so.`;
    const tools = [tool, tool];
    expect(render(version, [user("Hi")], { tools })).toBe(
      turn("system", listed) + turn("user", "Hi") + thinking,
    );
    expect(render(version, [system("Be brief."), user("Hi")], { tools })).toBe(
      turn("system", `${listed}\n\nBe brief.`) + turn("user", "Hi") + thinking,
    );
  });

  test("what a template refuses is the request's fault, in the template's words", () => {
    const refused: [readonly ChatMessage[], string][] = [
      [[user("Hi"), system("late")], "A system message must come first."],
      [[system("alone")], "Nobody asked anything."],
      [[user("<tool_response>\n1\n</tool_response>")], "Nobody asked anything."],
    ];
    for (const [messages, words] of refused) {
      const attempt = () => render(version, messages);
      expect(attempt).toThrow(InputError);
      expect(attempt).toThrow(words);
    }
  });

  test("results of tools in a row share one turn of the user", () => {
    const messages = [user("a"), calls("", {}, {}), result(" one "), result("two"), said("b")];
    const text = render(version, [...messages, user("c")], { preserve_thinking: false });
    const call = "<tool_call>\n<function=find>\n</function>\n</tool_call>";
    const results =
      "\n<tool_response>\none\n</tool_response>\n<tool_response>\ntwo\n</tool_response>";
    expect(text).toBe(
      turn("user", "a") +
        turn("assistant", `${call}\n${call}`) +
        `<|im_start|>user${results}<|im_end|>\n` +
        turn("assistant", "b") +
        turn("user", "c") +
        thinking,
    );
  });

  test("the first call follows the content after a blank line, others after a newline", () => {
    const call =
      "<tool_call>\n<function=find>\n<parameter=q>\nx\ny\n</parameter>\n</function>\n</tool_call>";
    const written = '{"q": "x\\ny"}';
    const text = render(version, [user("a"), calls(" I look. ", written, written), result("r")]);
    expect(text).toBe(
      turn("user", "a") +
        turn("assistant", `${empty}I look.\n\n${call}\n${call}`) +
        "<|im_start|>user\n<tool_response>\nr\n</tool_response><|im_end|>\n" +
        thinking,
    );
  });

  test("reasoning stands in the turns after the last query, also where there was none", () => {
    const messages = [
      user("a"),
      said("b", " old "),
      user("c"),
      { ...calls("", "{}"), reasoning_content: "\nlook\n" },
      result("r"),
      said("d"),
      // What calls gave may also come as the user's.
      user("<tool_response>\ns\n</tool_response>"),
      said("e", "new"),
    ];
    const text = render(version, messages, { preserve_thinking: false });
    const call = "<tool_call>\n<function=find>\n</function>\n</tool_call>";
    expect(text).toBe(
      turn("user", "a") +
        turn("assistant", "b") +
        turn("user", "c") +
        turn("assistant", `<think>\nlook\n</think>\n\n${call}`) +
        "<|im_start|>user\n<tool_response>\nr\n</tool_response><|im_end|>\n" +
        turn("assistant", `${empty}d`) +
        turn("user", "<tool_response>\ns\n</tool_response>") +
        turn("assistant", "<think>\nnew\n</think>\n\ne") +
        thinking,
    );
  });
});

describe("what differs", () => {
  const written =
    '{"yes": true, "no": false, "nothing": null, "n": -7, "x": 1.5, "s": "True", ' +
    '"list": [true, null, "é"], "map": {"k": false}}';
  const parameters = (version: TemplateVersion, json: string) => {
    const text = render(version, [user("a"), calls("", json)]);
    return [...text.matchAll(/<parameter=(.*?)>\n(.*?)\n<\/parameter>/g)].map(
      ([, , value]) => value,
    );
  };

  test("3.5 writes what is neither text, list nor map as Python does; later ones write JSON", () => {
    const rest = ["-7", "1.5", "True", '[true, null, "é"]', '{"k": false}'];
    expect(parameters("3.5", written)).toEqual(["True", "False", "None", ...rest]);
    expect(parameters("3.6", written)).toEqual(["true", "false", "null", ...rest]);
    expect(parameters("3.8", written)).toEqual(["true", "false", "null", ...rest]);
  });

  test.each(versions)("%s has numbers as Python reads and writes them", (version) => {
    const numbers: [string, string][] = [
      ["12345678901234567890123", "12345678901234567890123"],
      ["-9007199254740993", "-9007199254740993"],
      ["1.0", "1.0"],
      ["-0", "0"],
      ["1e3", "1000.0"],
      ["1E-7", "1e-07"],
      ["0.0001", "0.0001"],
      ["1e16", "1e+16"],
      ["123456789012345.0", "123456789012345.0"],
      ["1.50e300", "1.5e+300"],
      ["0.1", "0.1"],
    ];
    const fields = numbers.map(([json], index) => `"n${index}": ${json}`);
    const list = numbers.map(([json]) => json).join(", ");
    expect(parameters(version, `{${fields.join(", ")}, "list": {"all": [${list}]}}`)).toEqual([
      ...numbers.map(([, printed]) => printed),
      `{"all": [${numbers.map(([, printed]) => printed).join(", ")}]}`,
    ]);
  });

  test("3.5 and 3.6 cut reasoning from the content, 3.8 leaves it there", () => {
    const content = "<think>\nwhy\n</think>\n\nbecause";
    const messages = [user("a"), said(content), user("b"), said(content)];
    const cut =
      turn("user", "a") +
      turn("assistant", "because") +
      turn("user", "b") +
      turn("assistant", content) +
      thinking;
    expect(render("3.5", messages)).toBe(cut);
    expect(render("3.6", messages)).toBe(cut);
    expect(render("3.8", messages, { preserve_thinking: false })).toBe(
      turn("user", "a") +
        turn("assistant", content) +
        turn("user", "b") +
        turn("assistant", empty + content) +
        thinking,
    );
  });

  test("old reasoning: never kept by 3.5, where asked for by 3.6, unless unwanted by 3.8", () => {
    const messages = [user("a"), said("b", "why"), user("c")];
    const kept = (version: TemplateVersion) =>
      [undefined, null, true, false].map((each) =>
        render(version, messages, { preserve_thinking: each }).includes(
          "<think>\nwhy\n</think>\n\nb",
        ),
      );
    expect(kept("3.5")).toEqual([false, false, false, false]);
    expect(kept("3.6")).toEqual([false, false, true, false]);
    expect(kept("3.8")).toEqual([true, true, true, false]);
  });

  test("3.8 begins the system's turn with an instruction on effort", () => {
    const asked = (effort: string | null, kwargs: Kwargs = {}, ...before: ChatMessage[]) =>
      render("3.8", [...before, user("Hi")], { reasoning_effort: effort, ...kwargs });
    const rest = turn("user", "Hi") + thinking;
    expect(asked(null)).toBe(turn("system", "Effort: xhigh.") + rest);
    expect(asked("xhigh")).toBe(turn("system", "Effort: xhigh.") + rest);
    expect(asked("low")).toBe(turn("system", "Effort: low.") + rest);
    expect(asked("medium")).toBe(rest);
    expect(asked("low", {}, system("Be brief."))).toBe(
      turn("system", "Effort: low.\n\nBe brief.") + rest,
    );
    const off = asked("low", { enable_thinking: false });
    expect(off).toBe(`${turn("user", "Hi")}<|im_start|>assistant\n${empty}`);
    expect(() => asked("high")).toThrow("No such effort: high");
    expect(() => asked("high")).toThrow(InputError);
  });

  test("levels that 3.8 doesn't name become the nearest that it does", () => {
    const { effortLevels } = templates["3.8"];
    expect(effortLevels).toEqual(["low", "medium", "xhigh"]);
    const nearest = (["minimal", "low", "medium", "high", "max"] as const).map(
      (effort) => effortKwargs(effort, effortLevels)["reasoning_effort"],
    );
    expect(nearest).toEqual(["low", "low", "medium", "xhigh", "xhigh"]);
    expect(templates["3.6"].effortLevels).toEqual([]);
  });
});

test("tojson with options, of numbers that JavaScript can't hold", () => {
  const source = "{{ messages[1].tool_calls[0].function.arguments | tojson(indent=1) }}";
  const messages = [user("a"), calls("", '{"n": 1.0, "list": [2, {"x": null}]}')];
  const template = ChatTemplate.fromSource(source, "t.jinja");
  const text = template.render(messages, { tools: null, addGenerationPrompt: false });
  expect(JSON.parse(text)).toEqual({ n: 1, list: [2, { x: null }] });
});
