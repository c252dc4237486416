import type { ToolSpec } from "../text/tool-calls.ts";

/** What a reply may say, as requests describe it. */
export type GrammarSpec =
  /** Any JSON object. */
  | { readonly kind: "jsonObject" }
  /** JSON that the schema takes. */
  | { readonly kind: "jsonSchema"; readonly schema: Readonly<Record<string, unknown>> | boolean }
  /** What the regex is the whole of. */
  | { readonly kind: "regex"; readonly pattern: string }
  /** One of these texts. */
  | { readonly kind: "choice"; readonly choices: readonly string[] }
  /** EBNF as GBNF writes it; a reply is what its rule `root` says. */
  | { readonly kind: "ebnf"; readonly grammar: string }
  /** Calls of these tools in the model's own markup, and nothing else. */
  | { readonly kind: "calls"; readonly tools: readonly ToolSpec[]; readonly parallel: boolean };
