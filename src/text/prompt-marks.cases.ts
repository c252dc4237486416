import { readFileSync } from "node:fs";
import type { TokenId } from "../ids.ts";
import type { ChatMessage } from "./chat-messages.ts";
import { ChatTemplate } from "./chat-template.ts";
import type { PromptSource } from "./prompt-marks.ts";
import { Tokenizer } from "./tokenizer.ts";
import type { ToolSpec } from "./tool-calls.ts";

const nanoUrl = new URL("../../models/nano/chat_template.jinja", import.meta.url);

/** Nano's own: it writes past turns without reasoning that the client doesn't repeat. */
export const nano: string = readFileSync(nanoUrl, "utf8");

/** Drops the reasoning of turns before the latest user message; refuses to go without one. */
export const forgetful = `
{%- set ns = namespace(latest=-1) -%}
{%- for message in messages -%}
  {%- if message.role == 'user' -%}{%- set ns.latest = loop.index0 -%}{%- endif -%}
{%- endfor -%}
{%- if ns.latest < 0 -%}{{- raise_exception('No user message.') -}}{%- endif -%}
{%- if tools -%}{{- '<|im_start|>system\\n' + tools | tojson + '<|im_end|>\\n' -}}{%- endif -%}
{%- for message in messages -%}
  {{- '<|im_start|>' + message.role + '\\n' -}}
  {%- if message.role == 'assistant' and loop.index0 > ns.latest -%}
    {{- '<think>\\n' + (message.reasoning_content or '') + '\\n</think>\\n\\n' -}}
  {%- endif -%}
  {{- message.content -}}
  {%- for call in message.tool_calls or [] -%}
    {{- '<tool_call>\\n' + call.function | tojson + '\\n</tool_call>' -}}
  {%- endfor -%}
  {{- '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n<think>\\n' -}}{%- endif -%}`;

/** Counts the results of calls before them, and writes the calls' ids. */
export const grouped = `
{%- if tools -%}{{- '<|im_start|>system\\n' + tools | tojson + '<|im_end|>\\n' -}}{%- endif -%}
{%- for message in messages -%}
  {%- if message.role == 'tool' -%}
    {%- if messages[loop.index0 - 1].role != 'tool' -%}
      {%- set ns = namespace(count=0, open=true) -%}
      {%- for later in messages[loop.index0:] -%}
        {%- if later.role != 'tool' -%}{%- set ns.open = false -%}{%- endif -%}
        {%- if ns.open -%}{%- set ns.count = ns.count + 1 -%}{%- endif -%}
      {%- endfor -%}
      {{- '<|im_start|>tool\\n' + ns.count | string + ' results' -}}
    {%- endif -%}
    {{- '\\n' + message.tool_call_id + ': ' + message.content -}}
    {%- if loop.last or messages[loop.index0 + 1].role != 'tool' -%}{{- '<|im_end|>\\n' -}}{%- endif -%}
  {%- else -%}
    {{- '<|im_start|>' + message.role + '\\n' + message.content -}}
    {%- for call in message.tool_calls or [] -%}
      {{- '\\n' + call.function.name + call.function.arguments | tojson + ' ' + call.id -}}
    {%- endfor -%}
    {{- '<|im_end|>\\n' -}}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}`;

/** User and assistant by turns and nobody else, as plain text: no special token parts anything. */
export const strict = `
{%- for message in messages -%}
  {%- if message.role != ['user', 'assistant'][loop.index0 % 2] -%}
    {{- raise_exception('Roles must alternate.') -}}
  {%- endif -%}
  {{- message.role + ': ' + message.content + '\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- 'assistant:' -}}{%- endif -%}`;

const tokenizerUrl = new URL("../../models/nano/tokenizer.json", import.meta.url);
export const tokenizer: Tokenizer = Tokenizer.fromJson(
  readFileSync(tokenizerUrl, "utf8"),
  null,
  "tokenizer.json",
);
export const oneTool: ToolSpec[] = [{ type: "function", function: { name: "far" } }];

/** A conversation under a template, with nano's tokens. */
export function source(
  template: string,
  messages: readonly ChatMessage[],
  tools: ToolSpec[] | null = null,
  kwargs: Record<string, unknown> = {},
): PromptSource {
  const parsed = ChatTemplate.fromSource(template, "t.jinja");
  const render = (all: readonly ChatMessage[]) =>
    parsed.render(all, { tools, addGenerationPrompt: true, kwargs });
  return { messages, render, encode: (text) => tokenizer.encode(text) };
}

/** Its prompt's ids. */
export function promptOf({ messages, render, encode }: PromptSource): TokenId[] {
  return encode(render(messages));
}

export function user(content: string): ChatMessage {
  return { role: "user", content };
}

export function said(content: string): ChatMessage {
  return { role: "assistant", content };
}
