import type { Folder } from "../checkpoint/source.ts";
import { openFolder } from "../checkpoint/source-node.ts";
import { CheckpointError } from "../errors.ts";
import { jsonFileBytesMax } from "../limits.ts";
import { type DownloadPlace, downloadFile } from "./download-node.ts";
import { HubError } from "./hub-error.ts";
import type { HubFile, HubListing } from "./listing.ts";

/** A model's files as the hub lists them. What is read of them is pulled before. */
export function remoteFolder(place: DownloadPlace, signal: AbortSignal): Folder {
  const { cache, listing } = place;
  const { repo, commit, files } = listing;
  const name = `${repo}@${commit}`;
  const pulled = async (path: string): Promise<Folder> => {
    const file = files.get(path);
    if (!file) throw new CheckpointError(`${name}/${path}`, "does not exist");
    await downloadFile(place, file, { signal, onBytes() {}, onFault() {} });
    return await openFolder(cache.snapshot(commit));
  };
  return {
    name,
    has: async (path) => files.has(path),
    open: async (path) => (await pulled(path)).open(path),
    text: async (path) => {
      checkText(listing, files.get(path));
      return (await pulled(path)).text(path);
    },
  };
}

/** @throws HubError where a listing would have us pull a text that no reader takes */
export function checkText({ repo }: HubListing, file: HubFile | undefined): void {
  if (!file || file.size <= jsonFileBytesMax) return;
  const most = `a text file of at most ${jsonFileBytesMax} is read`;
  throw new HubError("hub_listing", `${repo}/${file.path} is ${file.size} bytes; ${most}.`);
}
