import { effect } from "@preact/signals";
import { render } from "preact";
import { systemClock } from "../../../src/clock.ts";
import { BrowserStore, MemoryStore } from "../conversation/store.ts";
import { openPage } from "../shared/page.ts";
import { App } from "./app.tsx";
import { Chats } from "./chats.ts";
import { Library } from "./library.ts";

const page = openPage();
const kept = await BrowserStore.open();
const library = new Library(kept ?? new MemoryStore());
const chats = new Chats({
  ...page,
  clock: systemClock,
  library,
  nextFrame: (draw) => requestAnimationFrame(draw),
});
if (kept === null) {
  library.notice.value = "This browser keeps nothing here: conversations end with the page.";
}

/** The address names the open conversation, so that it is there again after a reload. */
const named = (): string => location.hash.slice(1);
await chats.refresh();
if (named() !== "") await chats.show(named());
effect(() => {
  const { id, messages } = chats.open.value;
  const hash = messages.length === 0 ? "" : `#${id}`;
  if (location.hash !== hash) history.pushState(null, "", hash || location.pathname);
});
effect(() => {
  const { title } = chats.open.value;
  document.title = title === "" ? "deltafold" : `${title} – deltafold`;
});
addEventListener("popstate", () => {
  if (named() === "") chats.startNew();
  else void chats.show(named());
});
addEventListener("visibilitychange", () => {
  if (document.visibilityState === "visible") void chats.refresh();
});
addEventListener("pagehide", () => chats.leave());

render(<App page={page} chats={chats} />, document.body);
void page.connection.connect();
