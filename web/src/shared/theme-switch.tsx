import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { type Preferences, type Theme, themes } from "./preferences.ts";

/** The stylesheet does the rest: without the attribute, colours are as the system's. */
export function applyTheme(theme: Theme): void {
  const { dataset } = document.documentElement;
  if (theme === "system") delete dataset["theme"];
  else dataset["theme"] = theme;
}

const names: Readonly<Record<Theme, string>> = { system: "Auto", light: "Light", dark: "Dark" };

export function ThemeSwitch({ preferences }: { preferences: Preferences }): VNode {
  const [theme, setTheme] = useState(preferences.theme);
  const choose = (chosen: Theme) => {
    preferences.theme = chosen;
    applyTheme(chosen);
    setTheme(chosen);
  };
  return (
    <select
      class="quiet"
      aria-label="Colours"
      value={theme}
      onChange={({ currentTarget }) => choose(currentTarget.value as Theme)}
    >
      {themes.map((each) => (
        <option key={each} value={each}>
          {names[each]}
        </option>
      ))}
    </select>
  );
}
