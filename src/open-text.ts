/** The text side of a checkpoint folder. */
import { asFields, parseJsonObject } from "./checkpoint/json.ts";
import type { Folder } from "./checkpoint/source.ts";
import { CheckpointError } from "./errors.ts";
import { ChatTemplate } from "./text/chat-template.ts";
import { Tokenizer } from "./text/tokenizer.ts";

/** A checkpoint's tokenizer. @throws CheckpointError */
export async function openTokenizer(folder: Folder, vocabSize: number): Promise<Tokenizer> {
  const [file, configFile] = ["tokenizer.json", "tokenizer_config.json"];
  if (!(await folder.has(file))) throw new CheckpointError(folder.name, `has no ${file}`);
  const config = (await folder.has(configFile)) ? await folder.text(configFile) : null;
  const name = `${folder.name}/${file}`;
  const tokenizer = Tokenizer.fromJson(await folder.text(file), config, name);
  if (tokenizer.vocabSize <= vocabSize) return tokenizer;
  throw new CheckpointError(
    name,
    `has ids up to ${tokenizer.vocabSize - 1}, but the model's vocab_size is ${vocabSize}`,
  );
}

/** chat_template.jinja, or the template inside tokenizer_config.json; null where there is neither. */
export async function openTemplate(folder: Folder): Promise<ChatTemplate | null> {
  const file = "chat_template.jinja";
  if (await folder.has(file)) {
    return ChatTemplate.fromSource(await folder.text(file), `${folder.name}/${file}`);
  }
  const configFile = "tokenizer_config.json";
  if (!(await folder.has(configFile))) return null;
  const name = `${folder.name}/${configFile}`;
  const source = defaultTemplate(parseJsonObject(name, await folder.text(configFile)));
  return source === null ? null : ChatTemplate.fromSource(source, name);
}

/** A template's text; of a list of named ones, the one called default. */
function defaultTemplate(config: ReadonlyMap<string, unknown>): string | null {
  const field = config.get("chat_template");
  const named = Array.isArray(field) ? field.map(asFields) : [];
  const chosen = named.find((entry) => entry?.get("name") === "default")?.get("template") ?? field;
  return typeof chosen === "string" ? chosen : null;
}
