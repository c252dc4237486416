import type { VNode } from "preact";
import type { Figures } from "../conversation/message.ts";
import { percentText } from "../shared/format.ts";
import { contextShare, detailsOf, summaryOf } from "./figures.ts";

interface FiguresProps {
  readonly figures: Figures;
  /** The longest prompt and reply together; null where it isn't known. */
  readonly contextTokens: number | null;
}

/** What the server told of a reply; all of it when it is opened. */
export function FiguresView({ figures, contextTokens }: FiguresProps): VNode | null {
  const summary = summaryOf(figures);
  const share = contextShare(figures, contextTokens);
  if (summary.length === 0 && share === null) return null;
  return (
    <details
      class="figures"
      onToggle={({ currentTarget }) => {
        if (currentTarget.open) currentTarget.scrollIntoView({ block: "nearest" });
      }}
    >
      <summary>
        {summary.map((part) => (
          <span key={part}>{part}</span>
        ))}
        {share !== null && (
          <span class="context">
            <meter value={share} high={0.9} aria-label="Context used" />
            {percentText(share)} of the context
          </span>
        )}
        <span class="more">More</span>
      </summary>
      <dl>
        {detailsOf(figures).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}
