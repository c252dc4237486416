import { type Signal, useSignal } from "@preact/signals";
import type { VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useFocusBack } from "../shared/focus-back.ts";
import { KeyForm } from "../shared/key-form.tsx";
import type { Page } from "../shared/page.ts";
import { ThemeSwitch } from "../shared/theme-switch.tsx";
import { Announcer } from "./announcer.tsx";
import type { Chats } from "./chats.ts";
import { Composer, messageFieldId } from "./composer.tsx";
import { SettingsDialog } from "./settings-dialog.tsx";
import { Sidebar } from "./sidebar.tsx";
import { Transcript } from "./transcript.tsx";

/** Where the list of conversations lies over the page; as in the stylesheet. */
const narrow = "(max-width: 48rem)";

/** The chat page. */
export function App({ page, chats }: { page: Page; chats: Chats }): VNode {
  const isListOpen = useSignal(false);
  const areSettingsOpen = useSignal(false);
  const run = chats.runs.value.get(chats.open.value.id);
  useEscape(() => {
    if (isListOpen.value) isListOpen.value = false;
    else chats.stop();
  });
  useEffect(() => {
    const media = matchMedia(narrow);
    const close = () => {
      isListOpen.value = false;
    };
    media.addEventListener("change", close);
    return () => media.removeEventListener("change", close);
  }, [isListOpen]);
  return (
    <div class="app">
      <SkipLink />
      <Sidebar chats={chats} isOpen={isListOpen} />
      <div class="pane">
        <Bar page={page} isListOpen={isListOpen} areSettingsOpen={areSettingsOpen} />
        <main inert={isListOpen.value}>
          <Transcript page={page} chats={chats} run={run} />
          <Notices page={page} chats={chats} />
          <Composer chats={chats} run={run} />
        </main>
      </div>
      <SettingsDialog page={page} chats={chats} isOpen={areSettingsOpen} />
      <Announcer key={chats.open.value.id} run={run} />
    </div>
  );
}

/** Hears of the key where nobody else has used it, such as a dialog or a field. */
function useEscape(pressed: () => void): void {
  const latest = useRef(pressed);
  latest.current = pressed;
  useEffect(() => {
    const hear = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || event.defaultPrevented) return;
      if (document.querySelector("dialog[open]") === null) latest.current();
    };
    document.addEventListener("keydown", hear);
    return () => document.removeEventListener("keydown", hear);
  }, []);
}

interface BarProps {
  readonly page: Page;
  readonly isListOpen: Signal<boolean>;
  readonly areSettingsOpen: Signal<boolean>;
}

function Bar({ page, isListOpen, areSettingsOpen }: BarProps): VNode {
  const opener = useFocusBack<HTMLButtonElement>(isListOpen.value);
  return (
    <header class="bar">
      <button
        ref={opener}
        type="button"
        class="quiet only-narrow"
        aria-expanded={isListOpen.value}
        aria-controls="sidebar"
        onClick={() => {
          isListOpen.value = !isListOpen.value;
        }}
      >
        Chats
      </button>
      <ModelName page={page} />
      <ThemeSwitch preferences={page.preferences} />
      <button
        type="button"
        class="quiet"
        onClick={() => {
          areSettingsOpen.value = true;
        }}
      >
        Settings
      </button>
    </header>
  );
}

/** No link: the address names the conversation. */
function SkipLink(): VNode {
  return (
    <button
      type="button"
      class="skip"
      onClick={() => document.getElementById(messageFieldId)?.focus()}
    >
      Skip to the message
    </button>
  );
}

function ModelName({ page: { connection } }: { page: Page }): VNode {
  const { model, problem } = connection;
  const name = model.value?.id ?? (problem.value === null ? "" : "no model");
  return (
    <h1 class="model" title={name}>
      <span class="hidden">deltafold: </span>
      {name || "…"}
    </h1>
  );
}

function Notices({ page: { connection }, chats }: { page: Page; chats: Chats }): VNode {
  const problem = connection.wantsKey.value ? null : connection.problem.value;
  const notices = [problem, chats.library.notice.value].filter((each) => each !== null);
  return (
    <div class="notices">
      {connection.wantsKey.value && <KeyForm connection={connection} />}
      <div role="status">
        {notices.map((notice) => (
          <p key={notice} class="notice">
            {notice}
          </p>
        ))}
      </div>
    </div>
  );
}
