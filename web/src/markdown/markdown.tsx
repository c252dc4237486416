import type { VNode } from "preact";
import { useMemo, useRef } from "preact/hooks";
import { GrowingText } from "./growing-text.ts";
import { lex, type Token } from "./lexer.ts";
import { rendered } from "./render.tsx";

/** Markdown that may still be growing: then only its last blocks are read and drawn again. */
export function Markdown({ text, grows }: { text: string; grows: boolean }): VNode {
  const reader = useRef<GrowingText>(null);
  const blocks = useMemo(() => {
    if (!grows) return lex(text);
    reader.current ??= new GrowingText();
    return reader.current.read(text);
  }, [text, grows]);
  return (
    <div class="markdown">
      {blocks.map((token, at) => (
        // Blocks only come at the end
        <Block key={at} token={token} />
      ))}
    </div>
  );
}

/** The same element while its token is the same, so that it isn't compared again. */
function Block({ token }: { token: Token }): VNode {
  return useMemo(() => <>{rendered(token)}</>, [token]);
}
