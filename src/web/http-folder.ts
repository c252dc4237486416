import { checkRelativePath, type Folder, sourceText } from "../checkpoint/source.ts";
import { CheckpointError } from "../errors.ts";
import { BlockSource } from "./blocks.ts";
import { findFile, type HttpFile } from "./http.ts";
import { openStore } from "./opfs.ts";

/**
 * A checkpoint folder behind a URL. Each file is asked about until there is an answer.
 * @param base the folder's address; its query goes with every file's
 * @param cache where blocks outlive the page; null keeps none
 */
export function httpFolder(base: URL, cache: FileSystemDirectoryHandle | null): Folder {
  const name = base.href;
  const known = new Map<string, Promise<HttpFile | null>>();

  const find = (path: string): Promise<HttpFile | null> => {
    checkRelativePath(name, path);
    const found = known.get(path);
    if (found) return found;
    const asked = findFile(addressOf(base, path));
    known.set(path, asked);
    // Whoever asked hears of a failure, and may ask again.
    asked.catch(() => known.delete(path));
    return asked;
  };

  const open = async (path: string) => {
    const file = await find(path);
    if (!file) throw new CheckpointError(addressOf(base, path), "does not exist");
    return new BlockSource(file, cache && (await openStore(cache, file)));
  };

  return {
    name,
    has: async (path) => (await find(path)) !== null,
    open,
    async text(path) {
      const source = await open(path);
      try {
        return await sourceText(source);
      } finally {
        await source.close();
      }
    },
  };
}

function addressOf(base: URL, path: string): string {
  const address = new URL(base);
  const folder = base.pathname.replace(/\/$/, "");
  address.pathname = `${folder}/${path.split("/").map(encodeURIComponent).join("/")}`;
  return address.href;
}
