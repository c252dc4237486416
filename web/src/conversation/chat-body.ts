import type { Message, Reply } from "./message.ts";
import { numberRules, type Settings } from "./settings.ts";

/**
 * The body of a request for the reply that follows `messages`. What the settings leave to the server
 * isn't in it.
 * @param seed of this reply
 */
export function chatBody(messages: readonly Message[], settings: Settings, seed: number): object {
  const { systemPrompt, thinking, drafts, tools } = settings;
  const system = systemPrompt.trim() === "" ? [] : [{ role: "system", content: systemPrompt }];
  const numbers = numberRules.flatMap(({ name, field }) => {
    const value = settings[name];
    return value === null ? [] : [[field, value]];
  });
  return {
    messages: [...system, ...messages.flatMap(messageBody)],
    ...Object.fromEntries(numbers),
    seed,
    ...(thinking !== null && { chat_template_kwargs: { enable_thinking: thinking } }),
    ...(!drafts && { draft: false }),
    ...(tools.trim() !== "" && { tools: JSON.parse(tools) }),
    stream: true,
    stream_options: { include_usage: true },
  };
}

function messageBody(message: Message): object[] {
  if (message.role === "user") return [{ role: "user", content: message.text }];
  if (message.role === "tool") {
    return [{ role: "tool", tool_call_id: message.callId, content: message.text }];
  }
  return replyBody(message);
}

/**
 * With its reasoning: templates leave it out where they want it out, and where they don't, the cached
 * prompt goes on. A reply that never began to speak is left out.
 */
function replyBody({ text, reasoning, toolCalls }: Reply): object[] {
  if (text === "" && toolCalls.length === 0) return [];
  const calls = toolCalls.map(({ id, name, arguments: written }) => ({
    id,
    type: "function",
    function: { name, arguments: written },
  }));
  return [
    {
      role: "assistant",
      content: text,
      ...(reasoning !== "" && { reasoning_content: reasoning }),
      ...(calls.length > 0 && { tool_calls: calls }),
    },
  ];
}
