import { InvalidArgumentError } from "commander";

/*
 * Values of flags that may be given several times: each function takes one value more. Commander's message
 * around ours names the flag and the value.
 */

function refuse(rule: string): never {
  throw new InvalidArgumentError(`It must be ${rule}.`);
}

/** A key. Its rules are checked later: Commander's message would show it. */
export function keyValue(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text];
}

/** Where a file of keys is. */
export function keyFileValue(text: string): string {
  if (text === "") refuse("the path of a file, and it is empty");
  return text;
}

/** Names of hosts without ports, separated by commas. */
export function hostsValue(text: string, before: readonly string[] = []): readonly string[] {
  const names = text.split(",").map((name) => name.trim());
  const pattern = /^([a-z0-9._-]+|\[[0-9a-f:.]+\])$/i;
  if (!names.every((name) => pattern.test(name))) {
    refuse("host names without ports, such as example.org or [fd00::1]");
  }
  return [...before, ...names];
}

/** Origins of pages, separated by commas. */
export function originsValue(text: string, before: readonly string[] = []): readonly string[] {
  const origins = text.split(",").map((origin) => origin.trim());
  if (!origins.every(isOrigin)) refuse("origins such as https://example.org:8443, or *");
  return [...before, ...origins];
}

/** Browsers write an origin in one way. */
function isOrigin(text: string): boolean {
  if (text === "*") return true;
  const url = URL.canParse(text) ? new URL(text) : null;
  if (!url || url.host === "" || text.includes("*")) return false;
  // Of schemes that are a program's own, such as those of extensions, it knows no origin.
  return text === (url.origin === "null" ? `${url.protocol}//${url.host}` : url.origin);
}
