import { copyFile, mkdir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { codeOf, fileBytes } from "./file-system-node.ts";
import type { HubFile } from "./listing.ts";
import { isCommit, mainRevision, repoFolder } from "./names.ts";
import { PartName, refPart } from "./parts-node.ts";

/** What `symlink` says where there are no symbolic links, or not for this user, as on Windows. */
const linkless: ReadonlySet<unknown> = new Set(["EPERM", "ENOSYS", "ENOTSUP", "EINVAL", "UNKNOWN"]);

/**
 * A model in the hub's cache, as huggingface_hub lays it out: `blobs/` by digest, `refs/` from revisions
 * to commits, and a folder of links to blobs for each commit in `snapshots/`. A name appears when what it
 * stands for is whole.
 */
export class RepoCache {
  readonly folder: string;
  readonly blobs: string;
  readonly snapshots: string;
  readonly refs: string;
  readonly lock: string;
  readonly #symlinks: boolean;

  /** @param symlinks whether links may be made */
  constructor(cache: string, repo: string, symlinks: boolean) {
    this.folder = join(cache, repoFolder(repo));
    this.blobs = join(this.folder, "blobs");
    this.snapshots = join(this.folder, "snapshots");
    this.refs = join(this.folder, "refs");
    this.lock = join(cache, ".locks", repoFolder(repo), "deltafold.lock");
    this.#symlinks = symlinks;
  }

  /** The folder of a commit's files. */
  snapshot(commit: string): string {
    return join(this.snapshots, commit);
  }

  blob({ digest }: HubFile): string {
    return join(this.blobs, digest.hex);
  }

  /** The commit that a revision was when it was pulled; null where it wasn't. */
  async commitOf(revision: string | null): Promise<string | null> {
    if (revision !== null && isCommit(revision)) return revision;
    const text = await readFile(join(this.refs, revision ?? mainRevision), "utf8").catch(() => "");
    const commit = text.trim();
    return isCommit(commit) ? commit : null;
  }

  /** Notes what commit a revision is by now. */
  async setCommit(revision: string | null, commit: string): Promise<void> {
    if (revision !== null && isCommit(revision)) return;
    const path = join(this.refs, revision ?? mainRevision);
    if ((await this.commitOf(revision)) === commit) return;
    for (const folder of [dirname(path), this.blobs]) await mkdir(folder, { recursive: true });
    // Among the refs, it would be one.
    using part = new PartName(this.blobs, refPart);
    await writeFile(part.path, commit);
    await rename(part.path, path);
  }

  /** Whether a snapshot has a file, and all of it. */
  async has(commit: string, file: HubFile): Promise<boolean> {
    return (await fileBytes(join(this.snapshot(commit), file.path))) === file.size;
  }

  /** Whether a file's bytes are there, of whatever snapshot. */
  async hasBlob(file: HubFile): Promise<boolean> {
    return (await fileBytes(this.blob(file))) === file.size;
  }

  /**
   * Gives a snapshot a file whose blob is there. Without links, it gets the blob itself, or a copy.
   * @param isNew whether the blob was just made, so that no other snapshot has it
   */
  async link(commit: string, file: HubFile, isNew: boolean): Promise<void> {
    const path = join(this.snapshot(commit), file.path);
    const blob = this.blob(file);
    await mkdir(dirname(path), { recursive: true });
    if (this.#symlinks && (await linked(relative(dirname(path), blob), path))) return;
    if (isNew) await rename(blob, path);
    else {
      using copy = new PartName(this.blobs, file.digest.hex);
      await copyFile(blob, copy.path);
      await rename(copy.path, path);
    }
  }
}

/** False where there are no links. A link of the same name is replaced: its blob was not whole. */
async function linked(target: string, path: string): Promise<boolean> {
  try {
    await symlink(target, path);
    return true;
  } catch (cause) {
    if (linkless.has(codeOf(cause))) return false;
    if (codeOf(cause) !== "EEXIST") throw cause;
  }
  await rm(path);
  await symlink(target, path);
  return true;
}
