import type { VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { isSendKey } from "./send-key.ts";

/** Changes a message. Null: it stays as it was. */
export function Editor({
  text,
  done,
}: {
  text: string;
  done: (text: string | null) => void;
}): VNode {
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => field.current?.focus(), []);
  const take = () => {
    const changed = field.current!.value;
    if (changed.trim() !== "") done(changed);
  };
  return (
    <form
      class="editor"
      onSubmit={(event) => {
        event.preventDefault();
        take();
      }}
    >
      <textarea
        ref={field}
        aria-label="Edit your message"
        defaultValue={text}
        onKeyDown={(event) => {
          if (isSendKey(event)) {
            event.preventDefault();
            take();
          } else if (event.key === "Escape") {
            event.preventDefault();
            done(null);
          }
        }}
      />
      <div class="actions">
        <button type="submit">Send</button>
        <button type="button" class="quiet" onClick={() => done(null)}>
          Cancel
        </button>
      </div>
    </form>
  );
}
