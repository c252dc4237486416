import { Argument, type Command, Option } from "commander";
import { InputError } from "../errors.ts";
import { threadsMax, windowRowsMax } from "../limits.ts";
import {
  type Activations,
  type BackendName,
  type DrafterBits,
  drafterBits,
  embeddedModel,
  type KvType,
  type OpenOptions,
} from "../node.ts";
import { gibValue, oneOf, samplingValue, wholeNumber } from "./values.ts";

/** How a model is computed. */
export interface BackendFlags {
  readonly backend: "auto" | "webgpu" | BackendName;
  readonly threads?: number;
  readonly adapter?: string;
  readonly activations: "auto" | Activations;
  readonly kv?: KvType;
}

/** The flags of every command that serves requests. */
export interface ModelFlags extends BackendFlags, DraftFlags {
  readonly context?: number;
  /** In bytes. */
  readonly memoryGib?: number;
}

/** What drafts, which changes how fast replies come and no token of them. */
export interface DraftFlags extends DrafterFlags {
  readonly drafts: boolean;
  readonly draftTree: number;
}

/** The model that drafts. */
export interface DrafterFlags {
  readonly drafter: string;
  readonly drafterBits: DrafterBits;
  readonly draftVocab?: number;
}

/** How replies are drawn unless a request says. Absent: as the checkpoint recommends. */
export interface ReplyFlags {
  readonly maxTokens?: number;
  readonly temperature?: number;
  readonly topP?: number;
  readonly topK?: number;
  readonly minP?: number;
  readonly thinking?: boolean;
}

/** Of commands that pull nothing. */
export const hereArgument = (): Argument =>
  new Argument("[model]", "an embedded model, a folder, or a model in the cache: ORG/NAME").default(
    embeddedModel,
  );

/**
 * Checks what goes with `--shape`, and what doesn't.
 * @param others flags of random weights alone, beside --bits
 * @throws InputError
 */
export function checkShape(
  command: Command,
  flags: { readonly shape?: string },
  others: readonly string[] = [],
): void {
  const { registeredArguments, args } = command;
  const isShape = flags.shape !== undefined;
  if (isShape && registeredArguments[args.length - 1]?.name() === "model") {
    throw new InputError("--shape stands for a model: give one of the two.");
  }
  const given = ["bits", ...others].find((name) => command.getOptionValueSource(name) === "cli");
  if (isShape || given === undefined) return;
  const { long } = command.options.find((option) => option.attributeName() === given)!;
  throw new InputError(`${long} goes with --shape.`);
}

export const jsonOption = (what: string): Option => new Option("--json", what);

export const quietOption = (): Option =>
  new Option("-q, --quiet", "print results and errors, and nothing else");

/** Adds the flags of `ModelFlags`. */
export function addModelOptions(command: Command): Command {
  return addDraftOptions(addBackendOptions(command))
    .addOption(
      new Option(
        "--context <tokens>",
        "prompt and reply together (default: the most that fit, up to what the model supports)",
      ).argParser(wholeNumber(1, Number.MAX_SAFE_INTEGER)),
    )
    .addOption(
      new Option(
        "--memory-gib <n>",
        "memory for all of it (default: what is free; what a GPU has can't be known)",
      ).argParser(gibValue),
    );
}

/** Adds the flags of `DraftFlags`. */
export function addDraftOptions(command: Command): Command {
  command.addOption(
    new Option("--no-drafts", "decode serially, a token a pass: the same replies, slower"),
  );
  return addDrafterOptions(command).addOption(
    new Option("--draft-tree <n>", "verify trees of up to n drafted tokens, 1 to 15, or off")
      .argParser((text) => (text === "off" ? 0 : wholeNumber(1, windowRowsMax - 1)(text)))
      .default(0, "off"),
  );
}

/** Adds the flags of `DrafterFlags`. */
export function addDrafterOptions(command: Command): Command {
  return command
    .addOption(
      new Option(
        "--drafter <model>",
        "a drafter's folder; auto looks beside the model's; none copies from the text alone",
      ).default("auto"),
    )
    .addOption(
      new Option("--drafter-bits <n>", "quantise the drafter at load: 4 or 8; 0 leaves it as it is")
        .argParser(oneOf(drafterBits))
        .default(4),
    )
    .addOption(
      new Option(
        "--draft-vocab <n>",
        "let the drafter propose the first n token ids alone (default: all)",
      ).argParser(wholeNumber(16, Number.MAX_SAFE_INTEGER)),
    );
}

/** Adds the flags of `BackendFlags`. */
export function addBackendOptions(command: Command): Command {
  return command
    .addOption(
      new Option("--backend <name>", "what computes; auto is wasm")
        .choices(["auto", "webgpu", "wasm", "reference"])
        .default("auto"),
    )
    .addOption(
      new Option(
        "--adapter <which>",
        "with webgpu: the adapter's number, as doctor lists them, or part of its name (default: the first)",
      ),
    )
    .addOption(
      new Option("--threads <n>", "compute threads of wasm (default: one a core)").argParser(
        wholeNumber(1, threadsMax),
      ),
    )
    .addOption(
      new Option(
        "--activations <type>",
        "what matmuls read: f32; f16 (webgpu) and int8 (wasm) are faster and less precise; " +
          "auto is f16 on GPUs with a matrix unit for it, else f32",
      )
        .choices(["auto", "f32", "f16", "int8"])
        .default("auto"),
    )
    .addOption(
      new Option(
        "--kv <type>",
        "how keys and values are stored: f32; f16 (webgpu) halves their memory, less precisely",
      ).choices(["f32", "f16"]),
    );
}

/** Adds the flags of `ReplyFlags`. */
export function addReplyOptions(command: Command): Command {
  return command
    .addOption(
      new Option(
        "--max-tokens <n>",
        "longest reply, in tokens (default: 4096, or what fits)",
      ).argParser(wholeNumber(1, Number.MAX_SAFE_INTEGER)),
    )
    .addOption(
      new Option("--temperature <t>", "0 takes the likeliest token").argParser(
        samplingValue("temperature"),
      ),
    )
    .addOption(
      new Option("--top-p <p>", "keep this much probability; 1 keeps all").argParser(
        samplingValue("top_p"),
      ),
    )
    .addOption(
      new Option("--top-k <k>", "keep this many candidates; 0 keeps all").argParser(
        samplingValue("top_k"),
      ),
    )
    .addOption(
      new Option("--min-p <p>", "keep what has this share of the likeliest's chance").argParser(
        samplingValue("min_p"),
      ),
    )
    .addOption(new Option("--thinking", "let the model reason before it answers"))
    .addOption(new Option("--no-thinking", "ask it to answer at once"));
}

/**
 * What the flags ask of an engine.
 * @throws InputError for a choice that this version, or the chosen backend, doesn't have
 */
export function openOptions(flags: BackendFlags & Partial<ModelFlags> & ReplyFlags): OpenOptions {
  const { backend, activations } = flags;
  const cpuFlags = flags.threads !== undefined || activations === "int8";
  if ((backend === "reference" || backend === "webgpu") && cpuFlags) {
    throw new InputError(`--threads and --activations int8 are wasm's, not ${backend}'s.`);
  }
  if (activations === "f16" && backend !== "webgpu") {
    throw new InputError("--activations f16 goes with --backend webgpu.");
  }
  if (flags.adapter !== undefined && backend !== "webgpu") {
    throw new InputError("--adapter chooses a GPU: it goes with --backend webgpu.");
  }
  if (flags.kv === "f16" && backend !== "webgpu") {
    throw new InputError("--kv f16 goes with --backend webgpu.");
  }
  return {
    backend: backend === "auto" ? "wasm" : backend,
    ...(activations !== "auto" && { activations }),
    ...(flags.threads !== undefined && { threads: flags.threads }),
    ...(flags.adapter !== undefined && { adapter: flags.adapter }),
    ...(flags.kv !== undefined && { kv: flags.kv }),
    ...(flags.context !== undefined && { contextTokens: flags.context }),
    ...(flags.memoryGib !== undefined && { memoryBytes: flags.memoryGib }),
    ...draftsOf(flags),
    thinking: flags.thinking ?? null,
    sampling: samplingOf(flags),
  };
}

/** Commands that serve no requests have no such flags. */
function draftsOf(flags: Partial<DraftFlags>): Partial<OpenOptions> {
  const { drafts, drafter, drafterBits: bits, draftVocab, draftTree } = flags;
  return {
    ...(drafts !== undefined && { drafts }),
    ...(drafter !== undefined && { drafter }),
    ...(bits !== undefined && { drafterBits: bits }),
    ...(draftVocab !== undefined && { draftVocabulary: draftVocab }),
    ...(draftTree !== undefined && { draftTree }),
  };
}

function samplingOf(flags: ReplyFlags): NonNullable<OpenOptions["sampling"]> {
  const { temperature, topK, topP, minP } = flags;
  return {
    ...(temperature !== undefined && { temperature }),
    ...(topK !== undefined && { topK }),
    ...(topP !== undefined && { topP }),
    ...(minP !== undefined && { minP }),
  };
}
