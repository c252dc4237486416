import { useSignalEffect } from "@preact/signals";
import type { VNode } from "preact";
import { useRef, useState } from "preact/hooks";
import { Announcements } from "./announcements.ts";
import type { Run } from "./run.ts";

/** Tells those who don't see the page what is being written, and that it has ended. */
export function Announcer({ run }: { run: Run | undefined }): VNode {
  const latest = useRef<Run | undefined>(undefined);
  latest.current = run ?? latest.current;
  return (
    <div class="hidden" role="log" aria-live="polite" aria-label="Reply as it comes">
      {latest.current && <Spoken key={latest.current.reply.peek().id} run={latest.current} />}
    </div>
  );
}

function Spoken({ run }: { run: Run }): VNode {
  const announcements = useRef(new Announcements());
  const hasEnded = useRef(false);
  const [lines, setLines] = useState<readonly string[]>(["The model is writing."]);
  useSignalEffect(() => {
    const { text, ending, error } = run.reply.value;
    const isOver = run.isOver.value;
    // What is told of a reply behind its end, such as its figures, changes nothing of what was said.
    if (hasEnded.current) return;
    hasEnded.current = isOver;
    const end = ending === "failed" ? `The reply failed: ${error}` : "The reply has ended.";
    const said = [announcements.current.next(text, isOver), isOver ? end : ""];
    const added = said.filter((line) => line !== "");
    if (added.length > 0) setLines((before) => [...before, ...added]);
  });
  return (
    <>
      {lines.map((line, at) => (
        // Lines only come at the end
        <p key={at}>{line}</p>
      ))}
    </>
  );
}
