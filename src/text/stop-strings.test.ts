import fc from "fast-check";
import { expect, test } from "vitest";
import { InputError } from "../errors.ts";
import { StopMatcher } from "./stop-strings.ts";
import { StringMatcher } from "./string-matcher.ts";

function run(stops: readonly string[], pieces: readonly string[]) {
  const matcher = new StopMatcher(stops);
  let text = "";
  let stopped: string | null = null;
  for (const piece of pieces) {
    const result = matcher.push(piece);
    text += result.text;
    stopped = result.stopped;
  }
  return { text: text + matcher.flush(), stopped };
}

test("a stop over several tokens is never sent in part", () => {
  const matcher = new StopMatcher(["END"]);
  expect(matcher.push("one E")).toEqual({ text: "one ", stopped: null });
  expect(matcher.push("N")).toEqual({ text: "", stopped: null });
  expect(matcher.push("D two")).toEqual({ text: "", stopped: "END" });
  expect(matcher.push("three")).toEqual({ text: "", stopped: "END" });
  expect(matcher.flush()).toBe("");
});

test("a stop that begins inside a token cuts exactly", () => {
  expect(run(["stop"], ["please st", "op now"])).toEqual({ text: "please ", stopped: "stop" });
});

test("held text is released when the match fails, and at the end", () => {
  expect(run(["\n\nUser:"], ["a\n", "\nUs", "ed"])).toEqual({ text: "a\n\nUsed", stopped: null });
  expect(run(["\n\nUser:"], ["a\n\nUse"])).toEqual({ text: "a\n\nUse", stopped: null });
});

test("a failed match may hold the beginning of another", () => {
  expect(run(["aab"], ["a", "a", "a", "b"])).toEqual({ text: "a", stopped: "aab" });
});

test("the first completed wins; of those completed together, the longest", () => {
  expect(run(["abcd", "bc"], ["xabcd"])).toEqual({ text: "xa", stopped: "bc" });
  expect(run(["bcd", "abcd", "d"], ["xabcd"])).toEqual({ text: "x", stopped: "abcd" });
});

/** The definition, by trying every end and every start. */
function byDefinition(stops: readonly string[], text: string) {
  for (let end = 1; end <= text.length; end++) {
    const ending = stops.filter((stop) => text.slice(0, end).endsWith(stop));
    if (ending.length === 0) continue;
    const stopped = ending.reduce((a, b) => (b.length > a.length ? b : a));
    return { text: text.slice(0, end - stopped.length), stopped };
  }
  return { text, stopped: null };
}

const letters = (maxLength: number) =>
  fc.string({ unit: fc.constantFrom("a", "b", "c"), maxLength });

test("pieces of any size give what the definition gives", () => {
  const stop = letters(4).filter((text) => text !== "");
  const stops = fc.array(stop, { maxLength: 4 });
  fc.assert(
    fc.property(stops, fc.array(letters(5), { maxLength: 12 }), (list, pieces) => {
      expect(run(list, pieces)).toEqual(byDefinition(list, pieces.join("")));
    }),
    { numRuns: 1000 },
  );
});

test("what is held is no longer than the longest stop, and no sooner released", () => {
  const matcher = new StopMatcher(["aaaab"]);
  let sent = 0;
  for (let i = 1; i <= 2000; i++) {
    sent += matcher.push("a").text.length;
    expect(i - sent).toBe(Math.min(i, 4));
  }
});

test("a long run of near matches takes linear time", () => {
  const stop = `${"a".repeat(255)}b`;
  const matcher = new StringMatcher([stop]);
  const run = "a".repeat(400_000);
  expect(matcher.push(run).before.length).toBe(run.length - 255);
  expect(matcher.flush().length).toBe(255);
});

test.each([
  ["empty", [""]],
  ["half a surrogate pair", ["\ud83d"]],
  ["257 bytes", [`${"é".repeat(128)}a`]],
  ["17 of them", Array.from({ length: 17 }, (_, i) => `s${i}`)],
])("refused: %s", (_, stops) => {
  expect(() => new StopMatcher(stops)).toThrow(InputError);
  expect(() => new StopMatcher(stops)).toThrow(expect.objectContaining({ param: "stop" }));
});

test("no stops: everything passes at once", () => {
  expect(new StopMatcher([]).push("abc")).toEqual({ text: "abc", stopped: null });
});
