import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { InputError } from "../errors.ts";

/** What the environment says of the hub, by the variables that Python's huggingface_hub reads. */
export interface HubSettings {
  /** The cache's folder, as an absolute path. */
  readonly cache: string;
  readonly endpoint: URL;
  readonly token: string | null;
  /** Nothing is to be asked of the hub. */
  readonly offline: boolean;
  /** Whether snapshots may be made of symbolic links. */
  readonly symlinks: boolean;
}

const defaultEndpoint = "https://huggingface.co";

/** @throws InputError for a variable that makes no sense */
export async function hubSettings(
  variables: NodeJS.ProcessEnv,
  home: string = homedir(),
): Promise<HubSettings> {
  const given = (name: string) => variables[name] || null;
  const folderOf = (name: string) => given(name)?.replace(/^~(?=[/\\]|$)/, () => home) ?? null;
  const isOn = (name: string) => /^(1|on|yes|true)$/i.test(variables[name] ?? "");
  const caches = folderOf("XDG_CACHE_HOME") ?? join(home, ".cache");
  const root = folderOf("HF_HOME") ?? join(caches, "huggingface");
  const cache = folderOf("HF_HUB_CACHE") ?? folderOf("HUGGINGFACE_HUB_CACHE") ?? join(root, "hub");
  return {
    cache: resolve(cache),
    endpoint: endpointOf(given("HF_ENDPOINT") ?? defaultEndpoint),
    token: tokenOf(
      given("HF_TOKEN") ?? (await tokenFile(folderOf("HF_TOKEN_PATH") ?? join(root, "token"))),
    ),
    offline: isOn("HF_HUB_OFFLINE"),
    symlinks: !isOn("HF_HUB_DISABLE_SYMLINKS"),
  };
}

function endpointOf(text: string): URL {
  const url = URL.parse(text);
  if (url?.protocol === "https:" || url?.protocol === "http:") return url;
  throw new InputError(
    `HF_ENDPOINT must be an http or https address, not ${JSON.stringify(text)}.`,
  );
}

/** What is not a token must not be told. */
function tokenOf(text: string | null): string | null {
  const token = text?.trim() ?? "";
  if (token === "") return null;
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw new InputError("HF_TOKEN, or the token's file, has characters that no token has.");
}

const tokenFile = (path: string): Promise<string | null> =>
  readFile(path, "utf8").catch(() => null);
