import type { VNode } from "preact";
import type { MessageProps } from "./message-props.ts";

type SwitchProps = Pick<MessageProps, "chats" | "message" | "branches">;

/** Goes from branch to branch, where there are some. */
export function BranchSwitch({ chats, message, branches }: SwitchProps): VNode | null {
  const at = branches.findIndex(({ id }) => id === message.id);
  if (branches.length < 2) return null;
  const step = (by: number, label: string, sign: string) => (
    <button
      type="button"
      class="quiet"
      aria-label={label}
      disabled={branches[at + by] === undefined}
      onClick={() => chats.showBranch(branches[at + by]!.id)}
    >
      {sign}
    </button>
  );
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is of a form
    <span role="group" aria-label="Versions" class="branches">
      {step(-1, "Previous version", "‹")}
      <span>
        {at + 1} / {branches.length}
      </span>
      {step(1, "Next version", "›")}
    </span>
  );
}
