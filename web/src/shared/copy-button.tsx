import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { setAlarm } from "../../../src/clock.ts";

const shownMs = 1500;

/** Copies a text, and says for a moment whether that worked. */
export function CopyButton({ what, text }: { what: string; text: string }): VNode {
  const [outcome, setOutcome] = useState<string | null>(null);
  useEffect(() => {
    if (outcome !== null) return setAlarm(shownMs, () => setOutcome(null));
  }, [outcome]);
  const copy = async () => {
    // Pages that came over plain HTTP from another machine have no clipboard.
    const copied = await navigator.clipboard?.writeText(text).then(
      () => true,
      () => false,
    );
    setOutcome(copied ? "Copied" : "Not allowed");
  };
  return (
    <button type="button" class="quiet" aria-label={`Copy ${what}`} onClick={copy}>
      {outcome ?? "Copy"}
    </button>
  );
}
