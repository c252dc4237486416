import { afterAll, describe, expect, test } from "vitest";
import { detokenizedTokensMax } from "../limits.ts";
import { endServers, testServer, tokenizer } from "./engine.cases.ts";
import { expectError, hello, post, replyTo } from "./http.cases.ts";

const server = testServer({ contextTokens: 512 });
const { app, engine } = server;
const vocabSize = engine.info.backend.shape.vocabSize;
afterAll(() => endServers(server));

interface Tokenized {
  readonly count: number;
  readonly max_model_len: number;
  readonly tokens: readonly number[];
  readonly token_strs?: readonly string[];
}

async function tokenized(body: object, path = "/tokenize"): Promise<Tokenized> {
  const response = await post(app, path, body);
  expect(response.status).toBe(200);
  return (await response.json()) as Tokenized;
}

async function textOf(tokens: readonly number[], path = "/detokenize"): Promise<string> {
  const response = await post(app, path, { tokens });
  expect(response.status).toBe(200);
  const { prompt, content } = (await response.json()) as { prompt: string; content: string };
  expect(content).toBe(prompt);
  return prompt;
}

/** Numbers from 0 to below 1, the same in every run. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

test("a text and back, with either path and either name", async () => {
  const prompt = "Hello, world \u{1F980}\n";
  const tokens = tokenizer.encode(prompt);
  for (const prefix of ["", "/v1"]) {
    for (const body of [{ prompt }, { content: prompt }, { prompt, add_special_tokens: true }]) {
      expect(await tokenized({ model: "nano", ...body }, `${prefix}/tokenize`)).toEqual({
        count: tokens.length,
        max_model_len: 512,
        tokens,
      });
    }
    expect(await textOf(tokens, `${prefix}/detokenize`)).toBe(prompt);
  }
});

test("nothing is no tokens", async () => {
  const { count, tokens } = await tokenized({ prompt: "" });
  expect([count, tokens]).toEqual([0, []]);
  expect(await textOf([])).toBe("");
});

test("random texts come back, in the composed form that the vocabulary is of", async () => {
  const next = numbers(11);
  const letters = [
    ...'ab \n\t<|>{}"\\é漢\u{1F980}\u0301\u0000',
    "<|im_end|>",
    "<think>",
    "  ",
    "Hello",
  ];
  for (let round = 0; round < 100; round++) {
    const length = Math.floor(next() * 40);
    const prompt = Array.from({ length }, () => letters[Math.floor(next() * letters.length)]).join(
      "",
    );
    const { tokens, count } = await tokenized({ prompt });
    expect(tokens).toHaveLength(count);
    expect(await textOf(tokens)).toBe(prompt.normalize("NFC"));
  }
});

test("special tokens are one each, and are written out again", async () => {
  const special = tokenizer.idOf("<|im_end|>")!;
  const { tokens } = await tokenized({ prompt: "a<|im_end|>b" });
  expect(tokens.filter((id) => id === special)).toHaveLength(1);
  expect(await textOf([special, ...tokens])).toBe("<|im_end|>a<|im_end|>b");
});

test("token_strs are each token's own text", async () => {
  const prompt = "Hello <|im_end|> \u{1F980}";
  const { tokens, token_strs } = await tokenized({ prompt, return_token_strs: true });
  expect(token_strs).toEqual(tokens.map((id) => tokenizer.decode([id])));
  expect(token_strs!.join("")).toContain("Hello <|im_end|> ");
  expect(await tokenized({ prompt, return_token_strs: false })).not.toHaveProperty("token_strs");
});

describe("messages", () => {
  const tool = { type: "function", function: { name: "f", parameters: { type: "object" } } };

  test.each([
    {},
    { tools: [tool] },
    { tools: [tool], tool_choice: "none" },
    { reasoning_effort: "none" },
    { chat_template_kwargs: { enable_thinking: false } },
    { add_generation_prompt: true, add_special_tokens: false, continue_final_message: false },
  ])("%j: the tokens that a reply counts", async (fields) => {
    const body = { messages: hello, ...fields };
    const { count, tokens } = await tokenized(body);
    const { usage } = await replyTo(app, "/v1/chat/completions", { ...body, max_tokens: 1 });
    expect(count).toBe(usage!.prompt_tokens);
    expect(await textOf(tokens)).toMatch(/^<\|im_start\|>/);
  });

  test("are the template's text", async () => {
    const { tokens } = await tokenized({ messages: hello });
    const text = "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n<think>\n";
    expect(await textOf(tokens)).toBe(text);
    expect(tokens).toEqual(tokenizer.encode(text));
  });

  test("may be more than the context, to see by how much", async () => {
    const messages = [{ role: "user", content: "word ".repeat(1000) }];
    const { count, max_model_len } = await tokenized({ messages });
    expect(count).toBeGreaterThan(max_model_len);
  });
});

type Row = [what: string, body: object | string, code: string, param: string | null, words: string];

const tokenizeRows: Row[] = [
  ["nothing", "", "invalid_json", null, "not valid JSON"],
  ["neither", {}, "missing_field", "prompt", "prompt or messages must be there."],
  ["null", { prompt: null, messages: null }, "missing_field", "prompt", "must be there"],
  ["both", { prompt: "a", messages: hello }, "invalid_value", "prompt", "can't stand together"],
  ["two texts", { prompt: "a", content: "a" }, "invalid_value", "prompt", "can't stand together"],
  ["a number", { prompt: 5 }, "invalid_type", "prompt", "prompt must be a string, not 5."],
  ["ids", { prompt: [1] }, "invalid_type", "prompt", "prompt must be a string, not [1]."],
  ["a text as messages", { messages: "a" }, "invalid_type", "messages", "must be a list"],
  ["empty messages", { messages: [] }, "invalid_value", "messages", "must not be empty"],
  ["a text as tools", { messages: hello, tools: "f" }, "invalid_type", "tools", "must be a list"],
  [
    "no generation prompt",
    { messages: hello, add_generation_prompt: false },
    "unsupported_parameter",
    "add_generation_prompt",
    "add_generation_prompt is not supported except as true.",
  ],
  [
    "a reply to go on with",
    { messages: hello, continue_final_message: true },
    "unsupported_parameter",
    "continue_final_message",
    "continue_final_message is not supported except as false.",
  ],
  [
    "another template",
    { messages: hello, chat_template: "x" },
    "unsupported_parameter",
    "chat_template",
    "chat_template is not supported.",
  ],
  [
    "pieces of llama.cpp's",
    { content: "a", with_pieces: true },
    "unsupported_parameter",
    "with_pieces",
    "with_pieces is not supported except as false.",
  ],
  [
    "special tokens as text",
    { content: "a", parse_special: false },
    "unsupported_parameter",
    "parse_special",
    "parse_special is not supported except as true.",
  ],
  [
    "a text as flag",
    { prompt: "a", return_token_strs: "yes" },
    "invalid_type",
    "return_token_strs",
    "must be true or false",
  ],
  [
    "a number as flag",
    { prompt: "a", add_special_tokens: 1 },
    "invalid_type",
    "add_special_tokens",
    "must be true or false",
  ],
];

const detokenizeRows: Row[] = [
  [
    "no tokens",
    {},
    "missing_field",
    "tokens",
    "tokens is missing: it must be a list of token ids.",
  ],
  ["a text", { tokens: "1" }, "invalid_type", "tokens", 'a list of token ids, not "1".'],
  ["a text among ids", { tokens: [1, "2"] }, "invalid_type", "tokens", "a list of token ids"],
  ["lists of ids", { tokens: [[1]] }, "invalid_type", "tokens", "a list of token ids"],
  ["null among ids", { tokens: [null] }, "invalid_type", "tokens", "a list of token ids"],
  ["a negative id", { tokens: [-1] }, "invalid_value", "tokens", "Token id -1 is not in the vocab"],
  ["a broken id", { tokens: [1.5] }, "invalid_value", "tokens", "Token id 1.5 is not in the vocab"],
  ["an endless id", '{"tokens":[1e999]}', "invalid_value", "tokens", "Token id Infinity is not in"],
  [
    "an id too many",
    { tokens: [vocabSize - 1, vocabSize] },
    "invalid_value",
    "tokens",
    `Token id ${vocabSize} is not in the vocabulary of ${vocabSize} tokens.`,
  ],
  [
    "too many",
    { tokens: Array(detokenizedTokensMax + 1).fill(1) },
    "too_many",
    "tokens",
    `At most ${detokenizedTokensMax} tokens are read.`,
  ],
];

test.each(tokenizeRows)("refused: %s", async (_, body, code, param, words) => {
  await expectError(app, "/tokenize", body, 400, { code, param, words });
});

test.each(detokenizeRows)("refused: %s", async (_, body, code, param, words) => {
  await expectError(app, "/v1/detokenize", body, 400, { code, param, words });
});

test("other methods", async () => {
  for (const path of ["/tokenize", "/v1/tokenize", "/detokenize", "/v1/detokenize"]) {
    const response = await app.request(path);
    expect([response.status, response.headers.get("Allow")]).toEqual([405, "POST"]);
  }
});

test("models without a template have texts and no messages", async () => {
  const server = testServer({ chat: false });
  expect((await post(server.app, "/tokenize", { prompt: "a" })).status).toBe(200);
  const refused = await post(server.app, "/tokenize", { messages: hello });
  expect(refused.status).toBe(400);
  expect(await refused.text()).toContain("has no chat template");
});
