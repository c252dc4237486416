import { Server } from "../api/server.ts";
import { Connection } from "./connection.ts";
import { browserDrawer, Preferences } from "./preferences.ts";
import { applyTheme } from "./theme-switch.tsx";

/** What both pages begin with. */
export interface Page {
  readonly server: Server;
  readonly preferences: Preferences;
  readonly connection: Connection;
}

export function openPage(): Page {
  const preferences = new Preferences(browserDrawer());
  applyTheme(preferences.theme);
  const server = new Server(
    (path, init) => fetch(path, init),
    () => preferences.key,
  );
  return { server, preferences, connection: new Connection(server, preferences) };
}
