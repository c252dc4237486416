import type { VNode } from "preact";
import type { ToolMessage } from "../conversation/message.ts";
import type { MessageProps } from "./message-props.ts";
import { ReplyView } from "./reply-view.tsx";
import { UserView } from "./user-view.tsx";

export function MessageView(props: MessageProps): VNode {
  const { message, ...others } = props;
  if (message.role === "user") return <UserView {...others} message={message} />;
  if (message.role === "tool") return <ToolView message={message} />;
  return <ReplyView {...others} message={message} />;
}

function ToolView({ message }: { message: ToolMessage }): VNode {
  return (
    <article class="tool" aria-label="Tool result">
      <details>
        <summary>Result</summary>
        <pre>{message.text}</pre>
      </details>
    </article>
  );
}
