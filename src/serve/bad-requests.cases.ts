/** Every request that must be refused, whatever it is of, each with its status and code. */
import { bodyBytesMax, urlCharactersMax } from "../limits.ts";
import {
  badChats,
  badCompletions,
  chat,
  renamedFields,
  unsupportedFields,
} from "./bad-input.cases.ts";
import { chatPath, hello, textPath } from "./http.cases.ts";

export interface BadRequest {
  readonly what: string;
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array<ArrayBuffer> | null;
  readonly status: number;
  readonly code: string;
}

const json = { "Content-Type": "application/json" };
const responses = "/v1/responses";
const messages = "/v1/messages";

/** A body that is refused with status 400, unless said. */
const posted = (
  path: string,
  what: string,
  body: object | string | Uint8Array<ArrayBuffer>,
  code: string,
  status = 400,
): BadRequest => {
  const written =
    typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body);
  return { what, method: "POST", path, headers: json, body: written, status, code };
};

const bare = (method: string, path: string, status: number, code: string): BadRequest => ({
  what: `${method} ${path.slice(0, 60)}`,
  ...{ method, path, headers: {}, body: null, status, code },
});

const withHeaders = (
  what: string,
  headers: Readonly<Record<string, string>>,
  status: number,
  code: string,
): BadRequest => ({ ...posted(chatPath, what, chat({}), code, status), headers });

/** The same of every endpoint that takes JSON. */
const everywhere = (
  what: string,
  body: string | Uint8Array<ArrayBuffer>,
  code: string,
  status = 400,
): BadRequest[] =>
  [
    chatPath,
    textPath,
    responses,
    messages,
    `${messages}/count_tokens`,
    "/tokenize",
    "/detokenize",
  ].map((path) => posted(path, `${what} at ${path}`, body, code, status));

const utf8 = (...bytes: number[]) => Uint8Array.of(0x7b, 0x22, ...bytes, 0x22, 0x3a, 0x31, 0x7d);

const bodies: readonly BadRequest[] = [
  ...everywhere("nothing", "", "invalid_json"),
  ...everywhere("a number", "1", "invalid_type"),
  ...everywhere("a text", '"a"', "invalid_type"),
  ...everywhere("half an object", '{"model": "nano", ', "invalid_json"),
  ...everywhere("brackets without end", "[".repeat(1e6), "too_deep"),
  ...everywhere("objects without end", '{"a":'.repeat(1e6), "too_deep"),
  ...everywhere("half a character", utf8(0xc3), "invalid_utf8"),
  ...everywhere("a body too large", " ".repeat(bodyBytesMax + 1), "body_too_large", 413),
  posted(chatPath, "an overlong character", utf8(0xc0, 0xaf), "invalid_utf8"),
  posted(chatPath, "half a pair in UTF-8", utf8(0xed, 0xa0, 0x80), "invalid_utf8"),
  posted(chatPath, "a character past the last", utf8(0xf5, 0x80, 0x80, 0x80), "invalid_utf8"),
  posted(chatPath, "UTF-16", Uint8Array.of(0xff, 0xfe, 0x7b, 0, 0x7d, 0), "invalid_utf8"),
  posted(chatPath, "a control character", '{"messages":"\u0000"}', "invalid_json"),
  posted(chatPath, "two objects", "{}{}", "invalid_json"),
  posted(chatPath, "a comment", "{/* */}", "invalid_json"),
  posted(chatPath, "single quotes", "{'messages': []}", "invalid_json"),
  posted(chatPath, "a comma at the end", '{"messages": [],}', "invalid_json"),
  posted(chatPath, "undefined", '{"messages": undefined}', "invalid_json"),
  posted(chatPath, "minus infinity", '{"messages": [], "top_p": -Infinity}', "invalid_json"),
  posted(chatPath, "half an injected", '{"messages": "\\u12"}', "invalid_json"),
  posted(chatPath, "a form's body", "messages=a&model=nano", "invalid_json"),
  posted(chatPath, "a key of 8 MB", `{"${"k".repeat(bodyBytesMax - 9)}":1}`, "missing_field"),
  posted(chatPath, "a million keys", `{${'"k":1,'.repeat(1e6)}"k":1}`, "too_many"),
];

const numbers: readonly BadRequest[] = [
  ["max_tokens", "1e9", "context_length_exceeded"],
  ["max_tokens", "1e99", "invalid_type"],
  ["max_tokens", "9007199254740993", "invalid_type"],
  ["max_tokens", "-0", "invalid_type"],
  ["n", "0", "invalid_type"],
  ["n", "1e9", "too_many"],
  ["n", "1.5", "invalid_type"],
  ["n", '"2"', "invalid_type"],
  ["top_logprobs", "21", "invalid_type"],
  ["top_logprobs", "-1", "invalid_type"],
  ["top_logprobs", "5", "invalid_value"],
  ["logprobs", "5", "invalid_type"],
  ["temperature", "1e999", "invalid_value"],
  ["temperature", '"0.5"', "invalid_value"],
  ["temperature", "[0.5]", "invalid_value"],
  ["top_p", "-1", "invalid_value"],
  ["top_k", "1e999", "invalid_value"],
  ["min_p", "2", "invalid_value"],
  ["seed", "1e999", "invalid_value"],
  ["seed", "true", "invalid_value"],
  ["presence_penalty", "1e308", "invalid_value"],
  ["repetition_penalty", "-1", "invalid_value"],
  ["logit_bias", '{"1e9": 1}', "invalid_value"],
  ["logit_bias", '{"1000000000": 1}', "invalid_value"],
  ["logit_bias", '{"-1": 1}', "invalid_value"],
  ["logit_bias", '{"1": null}', "invalid_value"],
  ["logit_bias", '{"__proto__": 1}', "invalid_value"],
  ["thinking_budget", "-1", "invalid_type"],
  ["thinking_budget", "1e999", "invalid_type"],
  ["reasoning_effort", '"most"', "invalid_type"],
].map(([name, value, code]) =>
  posted(
    chatPath,
    `${name} ${value}`,
    `{"messages":${JSON.stringify(hello)},"${name}":${value}}`,
    code!,
  ),
);

const parameters = (value: unknown) =>
  chat({ tools: [{ type: "function", function: { name: "f", parameters: value } }] });
const required = (name: string, parametersOf: object = {}) =>
  chat({
    tools: [{ type: "function", function: { name, parameters: parametersOf } }],
    tool_choice: "required",
  });
const schema = (value: unknown) =>
  chat({ response_format: { type: "json_schema", json_schema: { name: "s", schema: value } } });
const ref = (to: string) => ({ $ref: to });

const tools: readonly BadRequest[] = [
  posted(chatPath, "a text as parameters", parameters("{}"), "invalid_type"),
  posted(chatPath, "a choice without tools", chat({ tool_choice: "required" }), "invalid_value"),
  posted(chatPath, "an unknown choice", chat({ tool_choice: "any" }), "invalid_type"),
  posted(chatPath, "a choice of a number", chat({ tool_choice: 1 }), "invalid_type"),
  posted(
    chatPath,
    "a choice of another tool",
    { ...required("f"), tool_choice: { type: "function", function: { name: "g" } } },
    "invalid_value",
  ),
  posted(
    chatPath,
    "a choice of the prototype's",
    { ...required("f"), tool_choice: { type: "function", function: { name: "__proto__" } } },
    "invalid_value",
  ),
  posted(chatPath, "a name that no call can write", required("a>\nb"), "invalid_value"),
  posted(
    chatPath,
    "a form beside required calls",
    { ...required("f"), response_format: { type: "json_object" } },
    "invalid_value",
  ),
  posted(
    chatPath,
    "a result without a call's id as a number",
    chat({ messages: [{ role: "tool", content: "x", tool_call_id: 5 }] }),
    "invalid_type",
  ),
];

const forms: readonly BadRequest[] = [
  posted(chatPath, "a form of a text", chat({ response_format: "json" }), "invalid_type"),
  posted(chatPath, "an unknown form", chat({ response_format: { type: "xml" } }), "invalid_type"),
  posted(
    chatPath,
    "a form without its schema",
    chat({ response_format: { type: "json_schema" } }),
    "missing_field",
  ),
  posted(chatPath, "a schema of a number", schema(5), "invalid_type"),
  posted(chatPath, "a type that isn't", schema({ type: "thing" }), "invalid_value"),
  posted(chatPath, "a reference to nothing", schema(ref("#/$defs/none")), "invalid_value"),
  posted(chatPath, "a reference to elsewhere", schema(ref("https://a.example/s")), "invalid_value"),
  posted(
    chatPath,
    "an object that must hold itself",
    schema({ type: "object", properties: { a: ref("#") }, required: ["a"] }),
    "invalid_value",
  ),
  posted(
    chatPath,
    "nothing of all characters",
    chat({ guided_regex: "[^\\s\\S]" }),
    "invalid_value",
  ),
  posted(chatPath, "nothing that fits", schema({ enum: [] }), "invalid_value"),
  posted(chatPath, "nothing at all", schema(false), "invalid_value"),
  posted(
    chatPath,
    "a pattern in a schema that backtracks",
    schema({ type: "string", pattern: "(a*)*\\1$" }),
    "invalid_value",
  ),
  posted(
    chatPath,
    "repeats of repeats",
    chat({ guided_regex: "((((a{1,1000}){1,1000}){1,1000}){1,1000}){1,1000}" }),
    "invalid_value",
  ),
  posted(chatPath, "an open group", chat({ guided_regex: "(a" }), "invalid_value"),
  posted(chatPath, "a range backwards", chat({ guided_regex: "[z-a]" }), "invalid_value"),
  posted(chatPath, "a look behind", chat({ guided_regex: "(?<=a)b" }), "invalid_value"),
  posted(chatPath, "a reference in a regex", chat({ guided_regex: "(a)\\1" }), "invalid_value"),
  posted(chatPath, "a regex of 1 MB", chat({ guided_regex: "a".repeat(1e6) }), "invalid_value"),
  posted(chatPath, "brackets in a regex", chat({ guided_regex: "(".repeat(1e5) }), "invalid_value"),
  posted(chatPath, "an empty grammar's root", chat({ grammar: "x ::= y" }), "invalid_value"),
  posted(chatPath, "a grammar without end", chat({ grammar: "root ::= root" }), "invalid_value"),
  posted(chatPath, "half a rule", chat({ grammar: 'root ::= "a' }), "invalid_value"),
  posted(chatPath, "choices of numbers", chat({ guided_choice: [1] }), "invalid_type"),
  posted(chatPath, "two forms", chat({ guided_regex: "a", guided_choice: ["a"] }), "invalid_value"),
  posted(chatPath, "a schema's text that isn't", chat({ guided_json: "{" }), "invalid_json"),
  posted(
    chatPath,
    "a form without end",
    chat({ guided_regex: "a", ignore_eos: true }),
    "invalid_value",
  ),
];

const deep = { a: 1, b: { ["__proto__"]: { polluted: 1 } } };
const prototypes: readonly BadRequest[] = [
  posted(chatPath, "a prototype of the body", '{"__proto__": {"messages": []}}', "missing_field"),
  posted(chatPath, "a prototype as messages", '{"messages": {"__proto__": []}}', "invalid_type"),
  posted(
    chatPath,
    "a role of the prototype",
    chat({ messages: [{ role: "__proto__", content: "x" }] }),
    "invalid_value",
  ),
  posted(
    chatPath,
    "a constructor as content",
    '{"messages": [{"role": "user", "content": {"constructor": {"prototype": {}}}}]}',
    "invalid_type",
  ),
  posted(textPath, "a prototype as prompt", { prompt: deep }, "invalid_type"),
  posted(responses, "a prototype as input", { input: deep }, "invalid_type"),
  posted(messages, "a prototype as messages", { max_tokens: 1, messages: deep }, "invalid_type"),
];

const injected = "\u001b[31m\r\nHTTP/1.1 200 OK\r\n\r\n{}";
const others: readonly BadRequest[] = [
  posted(chatPath, "a line in a role", chat({ messages: [{ role: injected }] }), "invalid_value"),
  posted(
    responses,
    "a line in an id",
    { input: "a", previous_response_id: injected },
    "previous_response_not_found",
    404,
  ),
  posted(textPath, "ids of 1e9", { prompt: [1e9] }, "invalid_value"),
  posted(textPath, "a million ids", { prompt: Array(1e6).fill(1) }, "context_length_exceeded"),
  posted(textPath, "a million texts", { prompt: Array(1e6).fill("a") }, "invalid_type"),
  posted(textPath, "8 MB of text", { prompt: "word ".repeat(1.6e6) }, "context_length_exceeded"),
  posted(textPath, "8 MB of spaces", { prompt: " ".repeat(8e6) }, "context_length_exceeded"),
  posted(
    chatPath,
    "8 MB of messages",
    chat({ messages: Array(4000).fill({ role: "user", content: "word ".repeat(390) }) }),
    "context_length_exceeded",
  ),
  posted(responses, "8 MB of input", { input: "é".repeat(4e6) }, "context_length_exceeded"),
  posted(
    messages,
    "8 MB of a message",
    { max_tokens: 1, messages: [{ role: "user", content: "word ".repeat(1.6e6) }] },
    "context_length_exceeded",
  ),
  posted(
    `${messages}/count_tokens`,
    "8 MB to count",
    { messages: [{ role: "user", content: "a".repeat(8e6) }] },
    "context_length_exceeded",
  ),
  posted(
    "/tokenize",
    "8 MB to encode",
    { prompt: "word ".repeat(1.6e6) },
    "context_length_exceeded",
  ),
  posted("/detokenize", "4 million ids", { tokens: Array(4e6).fill(1) }, "too_many"),
  posted(messages, "no max_tokens", { messages: hello }, "missing_field"),
  posted(messages, "no messages", { max_tokens: 1 }, "missing_field"),
  posted(responses, "no input", {}, "missing_field"),
];

const types: readonly BadRequest[] = [
  // A text would bring one.
  { ...withHeaders("no type", {}, 415, "unsupported_media_type"), body: utf8(0x61) },
  withHeaders("plain text", { "Content-Type": "text/plain" }, 415, "unsupported_media_type"),
  withHeaders(
    "a form",
    { "Content-Type": "application/x-www-form-urlencoded" },
    415,
    "unsupported_media_type",
  ),
  withHeaders(
    "several types",
    { "Content-Type": "text/plain, application/json" },
    415,
    "unsupported_media_type",
  ),
  withHeaders(
    "a packed body",
    { ...json, "Content-Encoding": "gzip" },
    415,
    "unsupported_media_type",
  ),
  withHeaders(
    "a length too large",
    { ...json, "Content-Length": "99999999" },
    413,
    "body_too_large",
  ),
  withHeaders(
    "another page's request",
    { ...json, "Sec-Fetch-Site": "cross-site" },
    403,
    "origin_not_allowed",
  ),
];

const urls: readonly BadRequest[] = [
  bare("GET", "/v1/unknown", 404, "unknown_url"),
  bare("GET", "/%00", 404, "unknown_url"),
  bare("GET", "/v1/%2e%2e/%2e%2e/etc/passwd", 404, "unknown_url"),
  bare("GET", "//v1/models", 404, "unknown_url"),
  bare("GET", "/v1/models/..%2f..%2fetc", 404, "model_not_found"),
  bare("GET", "/v1/models/%0d%0aSet-Cookie:%20a", 404, "model_not_found"),
  bare("GET", `/${"a".repeat(urlCharactersMax)}`, 414, "url_too_long"),
  bare("GET", chatPath, 405, "method_not_supported"),
  bare("PATCH", chatPath, 405, "method_not_supported"),
  bare("DELETE", "/v1/models", 405, "method_not_supported"),
  bare("POST", "/health", 405, "method_not_supported"),
  bare("PUT", "/metrics", 405, "method_not_supported"),
  bare("GET", "/v1/responses/none", 404, "response_not_found"),
  bare("GET", "/v1/responses/__proto__", 404, "response_not_found"),
  bare("DELETE", "/v1/responses/none", 404, "response_not_found"),
  bare("GET", "/v1/responses/none/input_items", 404, "response_not_found"),
];

export const badRequests: readonly BadRequest[] = [
  ...badChats.map(([what, body, code]) => posted(chatPath, `chat: ${what}`, body, code)),
  ...badCompletions.map(([what, body, code]) =>
    posted(textPath, `completion: ${what}`, body, code),
  ),
  ...unsupportedFields.flatMap(([name, value]) => [
    posted(chatPath, `chat: ${name}`, chat({ [name]: value }), "unsupported_parameter"),
    posted(
      textPath,
      `completion: ${name}`,
      { prompt: "a", [name]: value },
      "unsupported_parameter",
    ),
  ]),
  ...renamedFields.map(([name]) =>
    posted(chatPath, `chat: ${name}`, chat({ [name]: true }), "unsupported_parameter"),
  ),
  ...bodies,
  ...numbers,
  ...tools,
  ...forms,
  ...prototypes,
  ...others,
  ...types,
  ...urls,
];
