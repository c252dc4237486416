import { type ReplyKind, replyKinds } from "../reply-kinds.ts";
import {
  chatForm,
  type DrawFields,
  type HttpFields,
  type HttpForm,
  messagesForm,
  rawForm,
  responsesForm,
} from "./http-forms.ts";

/** A reply to be asked for, of the server and of the command line. */
export interface HttpAsk {
  /** The prompt's name, and how it is drawn. */
  readonly name: string;
  readonly prompt: string;
  readonly kind: ReplyKind;
  readonly form: HttpForm;
  readonly fields: HttpFields;
}

/** How the server is asked. */
export interface HttpWay {
  readonly drafted: boolean;
  readonly streamed: boolean;
}

interface HttpSampling {
  readonly name: string;
  readonly fields: DrawFields;
}

const sampleSamplings: readonly HttpSampling[] = [
  { name: "greedy", fields: { temperature: 0 } },
  { name: "t0.8 k20 p0.95", fields: { temperature: 0.8, top_k: 20, top_p: 0.95, seed: 7 } },
];

const sampleForms = [chatForm, rawForm];

/** Without a seed, it follows from the prompt. */
const laterSamplings: readonly HttpSampling[] = [
  { name: "t1 k0", fields: { temperature: 1, top_k: 0, top_p: 1 } },
  { name: "t0.7 k0 m0.05", fields: { temperature: 0.7, top_k: 0, min_p: 0.05, seed: -1 } },
  { name: "t1.3 k20", fields: { temperature: 1.3, top_k: 20, seed: 2 ** 53 - 1 } },
];

/**
 * Every prompt in every form, by sampling.
 * @param tokensMax of a reply
 */
export function httpAsks(full: boolean, tokensMax: number): readonly (readonly HttpAsk[])[] {
  const samplings = full ? [...sampleSamplings, ...laterSamplings] : sampleSamplings;
  const forms = full ? [...sampleForms, responsesForm, messagesForm] : sampleForms;
  return samplings.map(({ name, fields: drawn }) => {
    const fields = { ...drawn, max_tokens: tokensMax };
    return replyKinds.flatMap((kind) =>
      forms.map((form) => {
        const prompt = `${kind.name} ${form.name}`;
        return { name: `${prompt}, ${name}`, prompt, kind, form, fields };
      }),
    );
  });
}

/** Those that may go wrong most come first. */
export const httpWays: readonly HttpWay[] = [
  { drafted: true, streamed: true },
  { drafted: false, streamed: false },
  { drafted: true, streamed: false },
  { drafted: false, streamed: true },
];

export const wayName = ({ drafted, streamed }: HttpWay): string =>
  `${drafted ? "drafted" : "plain"}, ${streamed ? "streamed" : "whole"}`;
