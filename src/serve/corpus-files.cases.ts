/** Where the corpus lies. */
import { readFile } from "node:fs/promises";
import { type CorpusGroup, record } from "./corpus.cases.ts";
import { recordFraming } from "./corpus-framing.cases.ts";
import { operationGroups } from "./corpus-operation.cases.ts";
import { replyGroups } from "./corpus-replies.cases.ts";

export interface CorpusFile {
  readonly name: string;
  readonly url: URL;
  /** The exchanges as they are now. */
  record(): Promise<string[]>;
}

const file = (name: string, recordAll: () => Promise<string[]>): CorpusFile => ({
  name,
  url: new URL(`../../fixtures/http/${name}.txt`, import.meta.url),
  record: recordAll,
});

const ofGroup = (group: CorpusGroup) => file(group.name, async () => await record(group));

export const corpusFiles: readonly CorpusFile[] = [
  ...[...replyGroups, ...operationGroups].map(ofGroup),
  file("framing", recordFraming),
];

/** What stands between two exchanges, which none of them holds. */
const between = "\n\n\n";

export const written = (exchanges: readonly string[]): string => `${exchanges.join(between)}\n`;

export const read = async ({ url }: CorpusFile): Promise<string[]> =>
  (await readFile(url, "utf8")).slice(0, -1).split(between);
