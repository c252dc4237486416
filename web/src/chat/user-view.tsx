import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { UserMessage } from "../conversation/message.ts";
import { CopyButton } from "../shared/copy-button.tsx";
import { useFocusBack } from "../shared/focus-back.ts";
import { BranchSwitch } from "./branch-switch.tsx";
import { Editor } from "./editor.tsx";
import type { MessageProps } from "./message-props.ts";

/** What the user said: as it was typed, not as Markdown. */
export function UserView({ chats, message, branches }: MessageProps<UserMessage>): VNode {
  const [isEditing, setEditing] = useState(false);
  const opener = useFocusBack<HTMLButtonElement>(isEditing);
  const isBusy = chats.runs.value.has(chats.open.value.id);
  if (isEditing) {
    return (
      <Editor
        text={message.text}
        done={(text) => {
          setEditing(false);
          if (text !== null) chats.edit(message, text);
        }}
      />
    );
  }
  return (
    <article class="said" aria-label="You">
      <div class="bubble">{message.text}</div>
      <div class="actions">
        <BranchSwitch chats={chats} message={message} branches={branches} />
        <CopyButton what="message" text={message.text} />
        <button
          ref={opener}
          type="button"
          class="quiet"
          disabled={isBusy}
          onClick={() => setEditing(true)}
        >
          Edit
        </button>
      </div>
    </article>
  );
}
