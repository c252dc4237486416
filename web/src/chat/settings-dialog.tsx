import type { Signal } from "@preact/signals";
import type { VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { KeyForm } from "../shared/key-form.tsx";
import type { Page } from "../shared/page.ts";
import type { Chats } from "./chats.ts";
import { SettingsFields } from "./settings-fields.tsx";

interface DialogProps {
  readonly page: Page;
  readonly chats: Chats;
  readonly isOpen: Signal<boolean>;
}

/** Everything that is set for the open conversation. What is changed holds at once. */
export function SettingsDialog({ page, chats, isOpen }: DialogProps): VNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const shown = isOpen.value;
  useEffect(() => {
    if (shown) dialog.current?.showModal();
  }, [shown]);
  return (
    <dialog
      ref={dialog}
      class="settings"
      aria-labelledby="settings-title"
      onClose={() => {
        isOpen.value = false;
      }}
    >
      <header>
        <h2 id="settings-title">Settings</h2>
        <button type="button" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </header>
      {shown && <SettingsFields key={chats.open.value.id} chats={chats} />}
      <KeyForm connection={page.connection} />
    </dialog>
  );
}
