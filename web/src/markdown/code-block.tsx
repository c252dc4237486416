import type { VNode } from "preact";
import { CopyButton } from "../shared/copy-button.tsx";

/** Code as it is written, to be read and copied. */
export function CodeBlock({ language, text }: { language: string; text: string }): VNode {
  return (
    <figure class="code">
      <figcaption>
        <span>{language || "code"}</span>
        <CopyButton what="code" text={text} />
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable */}
      <pre tabIndex={0}>
        <code>{text}</code>
      </pre>
    </figure>
  );
}
