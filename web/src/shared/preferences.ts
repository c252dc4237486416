/** What this browser keeps for the page, beside conversations. */
import { checkSettings } from "../conversation/schema.ts";
import { plainSettings, type Settings } from "../conversation/settings.ts";

export const themes = ["system", "light", "dark"] as const;
export type Theme = (typeof themes)[number];

/** Local storage, or nothing where the browser keeps none. */
export interface Drawer {
  getItem(name: string): string | null;
  setItem(name: string, value: string): void;
  removeItem(name: string): void;
}

const names = {
  key: "deltafold.key",
  theme: "deltafold.theme",
  settings: "deltafold.settings",
} as const;

export class Preferences {
  readonly #drawer: Drawer | null;

  constructor(drawer: Drawer | null) {
    this.#drawer = drawer;
  }

  /** Of the API; empty for none. */
  get key(): string {
    return this.#read("key");
  }

  set key(key: string) {
    this.#write("key", key);
  }

  get theme(): Theme {
    const kept = this.#read("theme");
    return themes.find((theme) => theme === kept) ?? "system";
  }

  set theme(theme: Theme) {
    this.#write("theme", theme);
  }

  /** With which the next conversation begins. */
  get settings(): Settings {
    try {
      return checkSettings(JSON.parse(this.#read("settings"))) ?? plainSettings;
    } catch {
      return plainSettings;
    }
  }

  set settings(settings: Settings) {
    this.#write("settings", JSON.stringify(settings));
  }

  #read(name: keyof typeof names): string {
    return this.#drawer?.getItem(names[name]) ?? "";
  }

  #write(name: keyof typeof names, value: string): void {
    try {
      if (value === "") this.#drawer?.removeItem(names[name]);
      else this.#drawer?.setItem(names[name], value);
    } catch {
      // It is full; the page works without.
    }
  }
}

/** The browser's, which throws when it is only looked at where the user has forbidden it. */
export function browserDrawer(): Drawer | null {
  try {
    return localStorage;
  } catch {
    return null;
  }
}
