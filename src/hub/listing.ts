import { z } from "zod";
import { nestsWithin } from "../json.ts";
import { jsonDepthMax } from "../limits.ts";
import { HubError } from "./hub-error.ts";
import { type HubName, isCommit } from "./names.ts";

/** A file of a model, as the hub describes it. */
export interface HubFile {
  /** With `/` between its parts; unchecked. */
  readonly path: string;
  /** In bytes. */
  readonly size: number;
  readonly digest: Digest;
}

/** What a file's bytes hash to. In the cache, this names them. */
export interface Digest {
  /** `git`: SHA-1 behind the header that git gives a file; the hub has it for small files. */
  readonly kind: "sha256" | "git";
  /** In lower case. */
  readonly hex: string;
}

/** The files of a model at a commit. */
export interface HubListing {
  readonly repo: string;
  readonly commit: string;
  /** By path. */
  readonly files: ReadonlyMap<string, HubFile>;
}

const size = z.number().int().nonnegative().max(Number.MAX_SAFE_INTEGER);
const sha1 = z.string().regex(/^[0-9a-f]{40}$/);
const sha256 = z.string().regex(/^[0-9a-f]{64}$/);

/** The hub's answer about a revision, as far as it is read (`api/models/…/revision/…?blobs=true`). */
const answerSchema = z.object({
  sha: sha1,
  siblings: z.array(
    z.object({
      rfilename: z.string(),
      size,
      blobId: sha1,
      lfs: z.object({ sha256, size }).nullish(),
    }),
  ),
});

/** @throws HubError where it is no such answer, or about another commit */
export function parseListing({ repo, revision }: HubName, text: string): HubListing {
  const { sha, siblings } = checked(repo, text);
  if (revision !== null && isCommit(revision) && sha !== revision) {
    throw new HubError("hub_listing", `The hub lists ${sha} where ${revision} was asked for.`);
  }
  const files = siblings.map(({ rfilename, size, blobId, lfs }): HubFile => {
    const digest: Digest = lfs ? { kind: "sha256", hex: lfs.sha256 } : { kind: "git", hex: blobId };
    return { path: rfilename, size: lfs?.size ?? size, digest };
  });
  return { repo, commit: sha, files: new Map(files.map((file) => [file.path, file])) };
}

function checked(repo: string, text: string): z.infer<typeof answerSchema> {
  const parsed = answerSchema.safeParse(jsonOf(text));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const detail = `${issue?.path.join(".") || "the answer"}: ${issue?.message}`;
  throw new HubError("hub_listing", `The hub doesn't list ${repo}'s files as it should: ${detail}`);
}

/** Null where it isn't JSON, or nested too deeply to be the hub's. */
function jsonOf(text: string): unknown {
  if (!nestsWithin(text, jsonDepthMax)) return null;
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
