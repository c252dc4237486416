import type { OpenOptions } from "../node.ts";

/** What `optionArgs` can say. */
type Told = {
  readonly [Name in
    | "backend"
    | "threads"
    | "adapter"
    | "activations"
    | "kv"
    | "contextTokens"
    | "drafts"
    | "drafter"
    | "drafterBits"
    | "draftVocabulary"
    | "draftTree"]?: OpenOptions[Name] | undefined;
};

/** The flags that make `openOptions` give these options, for a command in a process of its own. */
export function optionArgs(options: Told): string[] {
  const { backend, threads, adapter, activations, kv, contextTokens, drafts = true } = options;
  const { drafter, drafterBits, draftVocabulary, draftTree } = options;
  const values: readonly (readonly [string, string | number | null | undefined])[] = [
    ["--backend", backend],
    ["--threads", threads],
    ["--adapter", adapter],
    ["--activations", activations],
    ["--kv", kv],
    ["--context", contextTokens],
    ["--drafter", drafter],
    ["--drafter-bits", drafterBits],
    ["--draft-vocab", draftVocabulary],
    ["--draft-tree", draftTree === 0 ? "off" : draftTree],
  ];
  const said = values.filter(([, value]) => value !== undefined && value !== null);
  return [
    ...said.flatMap(([flag, value]) => [flag, `${value}`]),
    ...(drafts ? [] : ["--no-drafts"]),
  ];
}
