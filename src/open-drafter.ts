/** A model's drafter, from its folder. */
import type { DrafterOptions } from "./backend/backend.ts";
import { openDrafter } from "./checkpoint/drafter.ts";
import type { Folder } from "./checkpoint/source.ts";
import { Bf16Codebooks, type Codebooks } from "./draft/lattice.ts";
import { CheckpointError, InputError } from "./errors.ts";
import { drafterFromCheckpoint } from "./weights/drafter-from-checkpoint.ts";
import { storedTokens } from "./weights/known-tokens.ts";
import type { Weights } from "./weights/weights.ts";

/** Bits that a drafter's matrices are quantised to at load; 0: they stay as stored. */
export const drafterBits = [0, 4, 8] as const;
export type DrafterBits = (typeof drafterBits)[number];

/** Where a model's drafter is. */
export interface DrafterPlace {
  /** @throws CheckpointError */
  openFolder(): Promise<Folder>;
  /** Whether somebody asked for just this one: then it is an error where it can't serve the model. */
  readonly asked: boolean;
}

export interface DrafterSettings {
  readonly drafterBits?: DrafterBits;
  /** How many tokens, from id 0 on, the drafter may propose. */
  readonly draftVocabulary?: number;
}

/** An open drafter; its weights can be read until it is disposed. */
export interface OpenDrafter extends AsyncDisposable {
  readonly options: DrafterOptions;
  /** DFlash2's. */
  readonly codebooks: Codebooks | null;
}

/**
 * Opens a drafter for a model.
 * @returns null where it can't serve the model and nobody asked for it; `onWarning` hears why
 * @throws CheckpointError
 */
export async function openDrafterFor(
  place: DrafterPlace,
  target: Weights,
  settings: DrafterSettings,
  onWarning: (message: string) => void,
): Promise<OpenDrafter | null> {
  try {
    return await openFor(await place.openFolder(), target, settings);
  } catch (error) {
    if (place.asked || !(error instanceof CheckpointError)) throw error;
    onWarning(withoutDrafter(error));
    return null;
  }
}

/** What to say where a model is served without the drafter that was found for it. */
export const withoutDrafter = (error: Error): string =>
  `Nothing is drafted by a model: ${error.message}`;

async function openFor(
  folder: Folder,
  target: Weights,
  { drafterBits: bits = 4, draftVocabulary }: DrafterSettings,
): Promise<OpenDrafter> {
  const checkpoint = await openDrafter(folder);
  try {
    const { vocabSize } = target.shape;
    const stored = { ...target.shape, vocabSize: storedTokens(target) };
    const { weights, codebooks } = await drafterFromCheckpoint(checkpoint, stored, bits);
    const vocabulary = Math.min(draftVocabulary ?? vocabSize, vocabSize);
    const { candidates } = weights.shape;
    if (vocabulary < candidates) {
      throw new InputError(
        `The drafter chooses among ${candidates} tokens, so it must be let propose as many, not ${vocabulary}.`,
      );
    }
    return {
      options: { weights, vocabulary, activations: "int8" },
      codebooks:
        codebooks && new Bf16Codebooks(codebooks.rank, codebooks.predecessor, codebooks.successor),
      [Symbol.asyncDispose]: () => checkpoint.close(),
    };
  } catch (error) {
    await checkpoint.close();
    throw error;
  }
}
