import type { Signal } from "@preact/signals";
import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Listed } from "../conversation/store.ts";
import { useFocusBack } from "../shared/focus-back.ts";
import type { Chats } from "./chats.ts";
import { saveFile } from "./save-file.ts";

/** The conversations. On narrow screens it lies over the page, and is closed by what is chosen. */
export function Sidebar({ chats, isOpen }: { chats: Chats; isOpen: Signal<boolean> }): VNode {
  const first = useRef<HTMLButtonElement>(null);
  const isShown = isOpen.value;
  useEffect(() => {
    if (isShown) first.current?.focus();
  }, [isShown]);
  const choose = (act: () => unknown) => () => {
    isOpen.value = false;
    return act();
  };
  return (
    <nav id="sidebar" class={isShown ? "sidebar open" : "sidebar"} aria-label="Conversations">
      <button ref={first} type="button" onClick={choose(() => chats.startNew())}>
        New chat
      </button>
      <ul class="conversations">
        {chats.library.list.value.map((listed) => (
          <Entry key={listed.id} chats={chats} listed={listed} choose={choose} />
        ))}
      </ul>
      <Transfer chats={chats} />
      <a class="quiet" href="./dashboard">
        Dashboard
      </a>
    </nav>
  );
}

interface EntryProps {
  readonly chats: Chats;
  readonly listed: Listed;
  readonly choose: (act: () => unknown) => () => unknown;
}

function Entry({ chats, listed: { id, title }, choose }: EntryProps): VNode {
  const [isRenaming, setRenaming] = useState(false);
  const opener = useFocusBack<HTMLButtonElement>(isRenaming);
  const name = title || "Untitled";
  if (isRenaming) {
    return (
      <li>
        <Rename
          title={title}
          done={(changed) => {
            setRenaming(false);
            if (changed !== null) void chats.rename(id, changed);
          }}
        />
      </li>
    );
  }
  const remove = () => {
    if (confirm(`Delete “${name}”? It can't be brought back.`)) void chats.remove(id);
  };
  const isCurrent = chats.open.value.id === id;
  return (
    <li class={isCurrent ? "current" : ""}>
      <button
        type="button"
        class="title"
        aria-current={isCurrent ? "true" : undefined}
        onClick={choose(() => chats.show(id))}
      >
        {name}
        {chats.runs.value.has(id) && <span class="busy"> (writing)</span>}
      </button>
      <button
        ref={opener}
        type="button"
        class="quiet"
        aria-label={`Rename ${name}`}
        title="Rename"
        onClick={() => setRenaming(true)}
      >
        ✎
      </button>
      <button
        type="button"
        class="quiet"
        aria-label={`Delete ${name}`}
        title="Delete"
        onClick={remove}
      >
        ✕
      </button>
    </li>
  );
}

/** Enter or leaving takes the name; Escape keeps the old one. */
function Rename({ title, done }: { title: string; done: (changed: string | null) => void }): VNode {
  const input = useRef<HTMLInputElement | null>(null);
  const take = () => done(input.current?.value.trim() || null);
  return (
    <input
      ref={(element) => {
        input.current = element;
        element?.focus();
      }}
      aria-label="Name of the conversation"
      value={title}
      onBlur={take}
      onKeyDown={(event) => {
        if (event.key === "Enter") take();
        if (event.key !== "Escape") return;
        event.preventDefault();
        done(null);
      }}
    />
  );
}

function Transfer({ chats }: { chats: Chats }): VNode {
  const [outcome, setOutcome] = useState("");
  const take = async ({ currentTarget }: { currentTarget: HTMLInputElement }) => {
    const [file] = currentTarget.files ?? [];
    if (!file) return;
    try {
      const taken = await chats.import(await file.text());
      setOutcome(taken === 1 ? "1 conversation imported." : `${taken} conversations imported.`);
    } catch (error) {
      setOutcome(error instanceof Error ? error.message : String(error));
    }
    // Or choosing the same file again would change nothing.
    currentTarget.value = "";
  };
  const give = async () => {
    saveFile("deltafold-conversations.json", await chats.exported());
    setOutcome("Exported.");
  };
  return (
    <div class="transfer">
      <button type="button" class="quiet" onClick={give}>
        Export
      </button>
      <label class="quiet file">
        Import
        <input type="file" accept=".json,application/json" onChange={take} />
      </label>
      <p role="status" class="help">
        {outcome}
      </p>
      <p class="help">Conversations are kept in this browser only.</p>
    </div>
  );
}
