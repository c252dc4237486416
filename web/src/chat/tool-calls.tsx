import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { ToolCall } from "../conversation/message.ts";

interface ToolCallsProps {
  readonly calls: readonly ToolCall[];
  /** Takes a result for each of them; null where they can't be answered here. */
  readonly answer: ((results: readonly string[]) => void) | null;
}

/** The calls of a reply. The page runs no tools: the user says what comes of them. */
export function ToolCalls({ calls, answer }: ToolCallsProps): VNode {
  const [results, setResults] = useState<readonly string[]>([]);
  return (
    <form
      class="calls"
      onSubmit={(event) => {
        event.preventDefault();
        answer?.(results);
      }}
    >
      {calls.map((call, at) => (
        <section key={call.id} class="call" aria-label={`Call of ${call.name}`}>
          <h3>
            Call of <code>{call.name}</code>
          </h3>
          <pre>{pretty(call.arguments)}</pre>
          {answer && (
            <textarea
              rows={2}
              aria-label={`Result of ${call.name}`}
              placeholder="Result"
              value={results[at] ?? ""}
              onInput={({ currentTarget: { value } }) =>
                setResults(calls.map((_, each) => (each === at ? value : (results[each] ?? ""))))
              }
            />
          )}
        </section>
      ))}
      {answer && <button type="submit">{calls.length > 1 ? "Send results" : "Send result"}</button>}
    </form>
  );
}

/** Arguments in lines of their own, once they are whole. */
function pretty(written: string): string {
  try {
    return JSON.stringify(JSON.parse(written), null, 2);
  } catch {
    return written;
  }
}
