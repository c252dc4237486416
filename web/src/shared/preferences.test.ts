import { expect, test } from "vitest";
import { plainSettings } from "../conversation/settings.ts";
import { MemoryDrawer } from "./memory-drawer.cases.ts";
import { Preferences } from "./preferences.ts";

test("keeps what is set, and forgets what is emptied", () => {
  const drawer = new MemoryDrawer();
  const set = new Preferences(drawer);
  set.key = "secret";
  set.theme = "dark";
  set.settings = { ...plainSettings, topK: 5 };
  const { key, theme, settings } = new Preferences(drawer);
  expect({ key, theme, topK: settings.topK }).toEqual({ key: "secret", theme: "dark", topK: 5 });
  set.key = "";
  expect(drawer.items.has("deltafold.key")).toBe(false);
});

test("what can't be read is as if it were new", () => {
  const drawer = new MemoryDrawer();
  drawer.items.set("deltafold.theme", "pink");
  for (const kept of ["", "{", "7", '{"topP": 2}']) {
    drawer.items.set("deltafold.settings", kept);
    const { theme, settings } = new Preferences(drawer);
    expect({ theme, settings }).toEqual({ theme: "system", settings: plainSettings });
  }
});

test("works without storage, and with a full one", () => {
  const full = new MemoryDrawer();
  full.isFull = true;
  for (const drawer of [null, full]) {
    const preferences = new Preferences(drawer);
    preferences.theme = "dark";
    expect(preferences.theme).toBe("system");
    expect(preferences.key).toBe("");
  }
});
