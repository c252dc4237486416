import type { VNode } from "preact";
import type { Reply, ToolCall } from "../conversation/message.ts";
import { Markdown } from "../markdown/markdown.tsx";
import { CopyButton } from "../shared/copy-button.tsx";
import { figureText } from "../shared/format.ts";
import { BranchSwitch } from "./branch-switch.tsx";
import { endingNote } from "./figures.ts";
import { FiguresView } from "./figures-view.tsx";
import type { MessageProps } from "./message-props.ts";
import type { Run } from "./run.ts";
import { ToolCalls } from "./tool-calls.tsx";

/** What asks the model to go on where its reply was cut. */
const goOn = "Go on exactly where you stopped.";

/** A reply; while it is written, as far as it has come. */
export function ReplyView(props: MessageProps<Reply>): VNode {
  const { run, message } = props;
  const reply = run ? run.reply.value : message;
  const { text, reasoning, toolCalls, error } = reply;
  const note = run ? null : endingNote(reply.ending);
  return (
    <article class="reply" aria-label="Reply" aria-busy={run !== undefined}>
      {reasoning !== "" && <Thinking text={reasoning} isOver={text !== "" || run === undefined} />}
      <Markdown text={text} grows={run !== undefined} />
      {toolCalls.length > 0 && <Calls {...props} calls={toolCalls} />}
      {run && <Progress run={run} hasBegun={text !== "" || reasoning !== ""} />}
      {error !== null && <p class="error">{error}</p>}
      {note !== null && <p class="note">{note}</p>}
      {!run && <Under {...props} />}
    </article>
  );
}

function Thinking({ text, isOver }: { text: string; isOver: boolean }): VNode {
  return (
    <details class="thinking">
      <summary>{isOver ? "Thoughts" : "Thinking…"}</summary>
      <div class="thoughts">{text}</div>
    </details>
  );
}

function Calls(props: MessageProps<Reply> & { calls: readonly ToolCall[] }): VNode {
  const { chats, message, run, isLast, calls } = props;
  const answer =
    run || !isLast ? null : (results: readonly string[]) => chats.answerCalls(message, results);
  return <ToolCalls calls={calls} answer={answer} />;
}

/** What is known while a reply is being written. */
function Progress({ run, hasBegun }: { run: Run; hasBegun: boolean }): VNode {
  const rate = run.tokensPerSecond.value;
  return (
    <p class="progress">
      {!hasBegun && <span class="waiting">Waiting for the first token</span>}
      {rate !== null && (
        <span title="Counted here, as pieces come">about {figureText(rate)} tok/s</span>
      )}
    </p>
  );
}

/** What can be done with a reply, and its figures. */
function Under({ page, chats, message, branches, isLast }: MessageProps<Reply>): VNode {
  const isBusy = chats.runs.value.has(chats.open.value.id);
  const isCut = message.ending === "length" || message.ending === "stopped";
  return (
    <>
      <div class="actions">
        <BranchSwitch chats={chats} message={message} branches={branches} />
        {message.text !== "" && <CopyButton what="reply" text={message.text} />}
        <button
          type="button"
          class="quiet"
          disabled={isBusy}
          onClick={() => chats.regenerate(message)}
        >
          {message.ending === "failed" ? "Try again" : "Regenerate"}
        </button>
        {isLast && isCut && message.text !== "" && (
          <button type="button" class="quiet" disabled={isBusy} onClick={() => chats.send(goOn)}>
            Continue
          </button>
        )}
      </div>
      <FiguresView
        figures={message.figures}
        contextTokens={page.connection.model.value?.contextTokens ?? null}
      />
    </>
  );
}
