/** How the hub names models, and how its cache names their folders. */

/** A model on the hub, and which of its states; null: the branch `main`. */
export interface HubName {
  /** `org/name`. */
  readonly repo: string;
  /** A branch, a tag, or a commit. */
  readonly revision: string | null;
}

export const mainRevision = "main";

const revisionCharsMax = 255;
const partForm = /^[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,94}[A-Za-z0-9_])?$/;
/** A step of a revision's path: git allows more, and no file system all of that. */
const stepForm = /^[A-Za-z0-9_](?:[A-Za-z0-9_.+=-]*[A-Za-z0-9_+=-])?$/;
const commitForm = /^[0-9a-f]{40}$/;
const folderPrefix = "models--";

export const isCommit = (revision: string): boolean => commitForm.test(revision);

/** Reads `org/name` or `org/name@revision`; null where a text is neither. */
export function parseHubName(text: string): HubName | null {
  const at = text.indexOf("@");
  const repo = at < 0 ? text : text.slice(0, at);
  const revision = at < 0 ? null : text.slice(at + 1);
  if (!isRepo(repo) || (revision !== null && !isRevision(revision))) return null;
  return { repo, revision };
}

/** A name as it is typed. */
export const hubNameText = ({ repo, revision }: HubName): string =>
  revision === null || revision === mainRevision ? repo : `${repo}@${revision}`;

/** The folder of a model in the cache, such as `models--org--name`. */
export const repoFolder = (repo: string): string => folderPrefix + repo.replace("/", "--");

/** The model of a folder in the cache; null where it is none's. */
export function repoOfFolder(folder: string): string | null {
  if (!folder.startsWith(folderPrefix)) return null;
  const repo = folder.slice(folderPrefix.length).replace("--", "/");
  return isRepo(repo) ? repo : null;
}

/** `--` would be taken for the slash, in the cache's names. */
function isRepo(repo: string): boolean {
  const parts = repo.split("/");
  const isPart = (part: string) => partForm.test(part) && !/--|\.\.|\.git$/.test(part);
  return parts.length === 2 && parts.every(isPart);
}

function isRevision(revision: string): boolean {
  const isStep = (step: string) => stepForm.test(step) && !/\.\.|\.lock$/.test(step);
  return revision.length <= revisionCharsMax && revision.split("/").every(isStep);
}
