import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { isFocusLost } from "../shared/focus-back.ts";
import type { Chats } from "./chats.ts";
import type { Run } from "./run.ts";
import { isSendKey } from "./send-key.ts";

export const messageFieldId = "message";

/** Where the user writes. What is written stays when another conversation is looked at. */
export function Composer({ chats, run }: { chats: Chats; run: Run | undefined }): VNode {
  const [text, setText] = useState("");
  const field = useRef<HTMLTextAreaElement>(null);
  const { id } = chats.open.value;
  const focus = () => {
    // Where there is no keyboard, the focus would bring one up over the page.
    if (!matchMedia("(pointer: coarse)").matches) field.current?.focus();
  };
  // Another conversation, the same field
  useEffect(focus, [id]);
  // What asked for the reply may be gone
  useEffect(() => {
    if (isFocusLost()) focus();
  }, [run]);
  const send = () => {
    if (run || text.trim() === "") return;
    chats.send(text);
    setText("");
  };
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <textarea
        id={messageFieldId}
        ref={field}
        rows={1}
        aria-label="Message"
        aria-keyshortcuts="Enter"
        placeholder="Message"
        enterkeyhint="send"
        value={text}
        onInput={({ currentTarget }) => setText(currentTarget.value)}
        onKeyDown={(event) => {
          if (!isSendKey(event)) return;
          event.preventDefault();
          send();
        }}
      />
      {run ? (
        <button type="button" class="stop" aria-keyshortcuts="Escape" onClick={() => run.stop()}>
          Stop
        </button>
      ) : (
        <button type="submit" disabled={text.trim() === ""}>
          Send
        </button>
      )}
    </form>
  );
}
