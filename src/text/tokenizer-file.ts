import { parseJsonRecord } from "../checkpoint/json.ts";
import { CheckpointError } from "../errors.ts";
import type { TokenId } from "../ids.ts";
import { isRecord, shown } from "../json.ts";
import type { AddedToken } from "./added-tokens.ts";
import { byteAlphabet } from "./byte-alphabet.ts";
import type { Encoding } from "./encoder.ts";
import { Merges } from "./merges.ts";
import { spellBytes, TokenTable } from "./token-table.ts";
import { wordPattern } from "./word-pattern.ts";

/** Ids are below it. */
const idsMax = 4_194_304;
/** The vocabulary's are below so many times its tokens, and some: tables are as long as the highest. */
const idsPerToken = 2;
const idsBesides = 4096;

/** A tokenizer.json, read and checked. */
export interface TokenizerFile {
  readonly table: TokenTable;
  readonly encoding: Encoding;
  /** One more than the highest id that has a token. */
  readonly vocabSize: number;
}

/**
 * Reads a byte-level BPE vocabulary. What would change ids and isn't known here is refused by name.
 * @param json the text of tokenizer.json, at `fileName`
 * @param configJson the text of tokenizer_config.json beside it, if there is one
 * @throws CheckpointError naming the file that is malformed or of another kind
 */
export function readTokenizerFile(
  json: string,
  configJson: string | null,
  fileName: string,
): TokenizerFile {
  const description = parseJsonRecord(fileName, json);
  const configName = fileName.replace(/[^/\\]*$/, "tokenizer_config.json");
  const config = configJson ? parseJsonRecord(configName, configJson) : {};
  const fail = failureOf(fileName);
  const { vocab, merges } = checkedModel(description, fail);
  const words = readPattern(description["pre_tokenizer"], fail);
  const tokens = tokensById(vocab, fail);
  const listed = addedTokens(description["added_tokens"], fail);
  const added = [...listed, ...moreTokens(config, listed, failureOf(configName))];
  const table = new TokenTable(tokens);
  const encoding = {
    added,
    composed: isRecord(description["normalizer"]),
    words,
    byteIds: byteIdsOf(table, fail),
    merges: readMerges(merges, tokens, table, fail),
  };
  const vocabSize = added.reduce((end, { id }) => Math.max(end, id + 1), tokens.length);
  return { table, encoding, vocabSize };
}

type Fail = (detail: string, cause?: unknown) => never;

function failureOf(fileName: string): Fail {
  return (detail, cause) => {
    throw new CheckpointError(fileName, detail, cause);
  };
}

/** Checks all that a byte-level BPE without anything special has in common. */
function checkedModel({ model, decoder, normalizer }: Record<string, unknown>, fail: Fail) {
  const { type, vocab, merges, ...options } = isRecord(model) ? model : {};
  if (type !== "BPE" || !isRecord(vocab)) return fail('model.type is not "BPE" with a vocab');
  if (!Array.isArray(merges)) return fail("model.merges is not a list");
  const unknown = ["dropout", "ignore_merges", "continuing_subword_prefix", "end_of_word_suffix"];
  for (const option of unknown) {
    if (options[option]) fail(`model.${option} isn't supported: ${shown(options[option])}`);
  }
  if (!isRecord(decoder) || decoder["type"] !== "ByteLevel") {
    return fail('decoder.type is not "ByteLevel"');
  }
  const composes = isRecord(normalizer) && normalizer["type"] === "NFC";
  if (!composes && normalizer !== null) return fail('normalizer is not null or of type "NFC"');
  return { vocab, merges };
}

/** What matches the words that the pre-tokenizer cuts text into. */
function readPattern(preTokenizer: unknown, fail: Fail): RegExp {
  const { type, pretokenizers } = isRecord(preTokenizer) ? preTokenizer : {};
  const steps = type === "Sequence" && Array.isArray(pretokenizers) ? pretokenizers : [];
  const [split = {}, bytes = {}] = steps.map((step) => (isRecord(step) ? step : {}));
  const regex = isRecord(split["pattern"]) ? split["pattern"]["Regex"] : undefined;
  const splits = split["type"] === "Split" && split["behavior"] === "Isolated" && !split["invert"];
  const spells = bytes["type"] === "ByteLevel" && bytes["add_prefix_space"] === false;
  const only = bytes["use_regex"] === false && steps.length === 2;
  if (!splits || typeof regex !== "string" || !spells || !only) {
    return fail("pre_tokenizer is not an isolating Split by a regex, and a ByteLevel without one");
  }
  try {
    return wordPattern(regex);
  } catch (cause) {
    return fail(`pre_tokenizer has a regex that isn't supported: ${String(cause)}`, cause);
  }
}

function tokensById(vocab: Record<string, unknown>, fail: Fail): (string | undefined)[] {
  const tokens: (string | undefined)[] = [];
  const listed = Object.keys(vocab);
  const most = Math.min(idsMax, idsPerToken * listed.length + idsBesides);
  for (const token of listed) {
    const id = checkedId(token, vocab[token], most, fail);
    if (tokens[id] !== undefined) fail(`token ${shown(token)} has the id ${id}, as another has`);
    tokens[id] = token;
  }
  return tokens;
}

function checkedId(token: string, id: unknown, most: number, fail: Fail): TokenId {
  if (typeof id === "number" && Number.isInteger(id) && id >= 0 && id < most) return id;
  return fail(`token ${shown(token)} has the id ${shown(id)}`);
}

function addedTokens(list: unknown, fail: Fail): AddedToken[] {
  if (!Array.isArray(list)) return fail("added_tokens is not a list");
  return list.map((token) => addedToken(token, isRecord(token) ? token["id"] : null, fail));
}

/** Those that only the config beside it has, by their ids: transformers adds them too. */
function moreTokens(
  { added_tokens_decoder: byId }: Record<string, unknown>,
  listed: readonly AddedToken[],
  fail: Fail,
): AddedToken[] {
  const known = new Set<unknown>(listed.map(({ content }) => content));
  return Object.entries(isRecord(byId) ? byId : {})
    .filter(([, token]) => !isRecord(token) || !known.has(token["content"]))
    .map(([id, token]) => addedToken(token, Number(id), fail));
}

function addedToken(token: unknown, id: unknown, fail: Fail): AddedToken {
  const { content, special, normalized, ...flags } = isRecord(token) ? token : {};
  if (typeof content !== "string" || content === "") return fail("an added token has no content");
  for (const flag of ["lstrip", "rstrip", "single_word"]) {
    if (flags[flag]) fail(`added token ${shown(content)} has ${flag}, which isn't supported`);
  }
  return {
    id: checkedId(content, id, idsMax, fail),
    content,
    special: special === true,
    normalized: normalized === undefined ? special !== true : normalized === true,
  };
}

function byteIdsOf(table: TokenTable, fail: Fail): Int32Array {
  const ids = new Int32Array(256);
  for (const [letter, byte] of byteAlphabet) {
    const id = table.find(Uint8Array.of(byte), 0, 1);
    if (id < 0) fail(`model.vocab lacks the byte token ${letter}`);
    ids[byte] = id;
  }
  return ids;
}

/** @param list pairs of tokens, or the two with a space between; those of lower rank come first */
function readMerges(
  list: readonly unknown[],
  tokens: readonly (string | undefined)[],
  table: TokenTable,
  fail: Fail,
): Merges {
  const merges = new Merges(list.length);
  const lettersMax = tokens.reduce((most, token) => Math.max(most, token?.length ?? 0), 0);
  const bytes = new Uint8Array(2 * lettersMax);
  const spell = (part: unknown, start: number) =>
    (typeof part === "string" ? spellBytes(part, bytes, start) : null) ?? start;
  for (const [rank, merge] of list.entries()) {
    const parts: unknown = typeof merge === "string" ? merge.split(" ") : merge;
    const [first, second] = Array.isArray(parts) && parts.length === 2 ? parts : [];
    const middle = spell(first, 0);
    const end = spell(second, middle);
    const left = table.find(bytes, 0, middle);
    const right = table.find(bytes, middle, end);
    const merged = table.find(bytes, 0, end);
    if (left < 0 || right < 0 || merged < 0) {
      fail(`model.merges has ${shown(merge)}, which is no merge of two tokens to a third`);
    }
    merges.set(left, right, rank, merged);
  }
  return merges;
}
