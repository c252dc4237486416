import fc from "fast-check";
import { expect, test } from "vitest";
import type { TokenLogprob } from "../stream.ts";
import { TextLogprobs } from "./responses-logprobs.ts";

const encoder = new TextEncoder();

/** Known by its id. */
function token(written: string | Uint8Array, id = 0): TokenLogprob {
  const bytes = typeof written === "string" ? encoder.encode(written) : written;
  return { id, text: new TextDecoder().decode(bytes), bytes, logprob: -1, top: [] };
}
const texts = (tokens: readonly TokenLogprob[]) => tokens.map(({ text }) => text);

test("tags and white space before a text are not its tokens", () => {
  const logprobs = new TextLogprobs();
  logprobs.add(["</think>", "\n\n", "Good", " day"].map((each) => token(each)));
  expect(texts(logprobs.take("Good day"))).toEqual(["Good", " day"]);
  logprobs.skip();
  logprobs.add(["\n\n> ", "quoted"].map((each) => token(each)));
  expect(texts(logprobs.take("> quoted"))).toEqual(["\n\n> ", "quoted"]);
});

test("a token comes with the piece that it begins in", () => {
  const logprobs = new TextLogprobs();
  logprobs.add([token("Go"), token("od day")]);
  expect(texts(logprobs.take("G"))).toEqual(["Go"]);
  expect(texts(logprobs.take("oo"))).toEqual(["od day"]);
  expect(texts(logprobs.take("d da"))).toEqual([]);
  logprobs.add([token("s")]);
  expect(texts(logprobs.take("ys"))).toEqual(["s"]);
});

test("what was held back for something else is forgotten", () => {
  const logprobs = new TextLogprobs();
  logprobs.add([token("One\n"), token("<tool_call>")]);
  expect(texts(logprobs.take("One"))).toEqual(["One\n"]);
  logprobs.skip();
  logprobs.add([token("</tool_call>"), token("\nTwo")]);
  expect(texts(logprobs.take("\nTwo"))).toEqual(["\nTwo"]);
});

test("however a text is cut into tokens and held back, each token comes once", () => {
  const cuts = fc.array(fc.nat(3), { minLength: 1, maxLength: 20 });
  const holds = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), {
    minLength: 1,
    maxLength: 20,
  });
  const property = fc.property(
    fc.string({ unit: "binary", minLength: 1 }),
    cuts,
    holds,
    (raw, lengths, shares) => {
      const text = raw.toWellFormed();
      const characters = [...text];
      const bytes = encoder.encode(text);
      const logprobs = new TextLogprobs();
      const taken: number[] = [];
      let end = 0;
      let shown = 0;
      let id = 0;
      while (end < bytes.length) {
        const start = end;
        end += 1 + lengths[id % lengths.length]!;
        logprobs.add([token(bytes.slice(start, end), id++)]);
        const whole = new TextDecoder().decode(bytes.slice(0, end), { stream: true });
        const ready = [...whole].length - shown;
        const share = end < bytes.length ? shares[id % shares.length]! : 1;
        const next = shown + Math.round(ready * share);
        const piece = characters.slice(shown, next).join("");
        if (piece !== "") taken.push(...logprobs.take(piece).map((each) => each.id));
        shown = next;
      }
      expect(taken).toEqual(Array.from({ length: id }, (_, index) => index));
    },
  );
  fc.assert(property, { seed: 5, numRuns: 300 });
});
