import { checkRelativePath } from "../checkpoint/source.ts";
import { HubError } from "./hub-error.ts";

/** What Windows has devices for, whatever follows behind a dot. */
const device = /^(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|$)/i;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const forbidden = /[<>:"|?*\u0000-\u001f]|[. ]$/;

/**
 * Refuses a file's path, as a hub gives it, that leaves its folder or that Windows can't have: a cache
 * may be shared, and a model should not depend on who pulls it.
 * @param owner the model, for the message
 */
export function checkFilePath(owner: string, path: string): void {
  checkRelativePath(owner, path);
  const wrong = path.split("/").find((part) => device.test(part) || forbidden.test(part));
  if (wrong === undefined) return;
  throw new HubError(
    "hub_file_name",
    `${owner}: ${JSON.stringify(path)} is no name that every system has for a file`,
  );
}
