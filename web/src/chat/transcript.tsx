import { useSignalEffect } from "@preact/signals";
import type { VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { branchesAt, shownMessages } from "../conversation/tree.ts";
import type { Page } from "../shared/page.ts";
import type { Chats } from "./chats.ts";
import { MessageView } from "./message-view.tsx";
import type { Run } from "./run.ts";

/** Closer to the end than this, the view goes on with a reply as it grows. */
const nearPixels = 60;

interface TranscriptProps {
  readonly page: Page;
  readonly chats: Chats;
  readonly run: Run | undefined;
}

/** The shown branch of the open conversation. */
export function Transcript({ page, chats, run }: TranscriptProps): VNode {
  const conversation = chats.open.value;
  const messages = shownMessages(conversation);
  const runId = run?.reply.peek().id;
  return (
    <Scrolled leaf={conversation.leaf} run={run}>
      {messages.length === 0 ? (
        <p class="welcome">Ask something.</p>
      ) : (
        <ol class="messages" aria-label="Messages">
          {messages.map((message) => (
            <li key={message.id}>
              <MessageView
                page={page}
                chats={chats}
                message={message}
                branches={branchesAt(conversation, message.id)}
                run={message.id === runId ? run : undefined}
                isLast={message.id === conversation.leaf}
              />
            </li>
          ))}
        </ol>
      )}
    </Scrolled>
  );
}

interface ScrolledProps {
  readonly leaf: string | null;
  readonly run: Run | undefined;
  readonly children: VNode;
}

/** Stays at the end of what it holds, unless the user has gone up. */
function Scrolled({ leaf, run, children }: ScrolledProps): VNode {
  const box = useRef<HTMLElement>(null);
  const isAtEnd = useRef(true);
  const toEnd = () => {
    if (box.current && isAtEnd.current) box.current.scrollTop = box.current.scrollHeight;
  };
  // Another message, another place
  useEffect(() => {
    isAtEnd.current = true;
    toEnd();
  }, [leaf]);
  // What stands under a reply comes with its end.
  useEffect(toEnd, [run]);
  return (
    <section
      ref={box}
      class="transcript"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable
      tabIndex={0}
      aria-label="Conversation"
      onScroll={({ currentTarget: { scrollTop, clientHeight, scrollHeight } }) => {
        isAtEnd.current = scrollHeight - scrollTop - clientHeight < nearPixels;
      }}
    >
      {children}
      {run && <Following key={run.reply.peek().id} run={run} grown={toEnd} />}
    </section>
  );
}

/** Says when a reply has grown on the screen. */
function Following({ run, grown }: { run: Run; grown: () => void }): null {
  useSignalEffect(() => {
    void run.reply.value;
    queueMicrotask(grown);
  });
  return null;
}
