import { expect, test } from "vitest";
import { InvariantError, MemoryError } from "../errors.ts";
import { tinyShape } from "../model/tiny-shape.ts";
import { HeldStates, heldBytes } from "./held.ts";

test("held states are counted until they are disposed of", () => {
  const states = new HeldStates<string>(12);
  const [first, second] = [states.add(() => "first"), states.add(() => "second")];
  expect([first.bytes, states.size, states.contentOf(second)]).toEqual([12, 2, "second"]);
  first[Symbol.dispose]();
  first[Symbol.dispose]();
  expect([states.size, states.contentOf(second)]).toEqual([1, "second"]);
  expect(() => states.contentOf(first)).toThrow(InvariantError);
  expect(() => new HeldStates<string>(12).contentOf(second)).toThrow(InvariantError);
});

test("what was disposed of is written over by the next, once", () => {
  const states = new HeldStates<number[]>(1);
  const content = (value: number) => (into: number[] | undefined) => {
    into?.splice(0, 1, value);
    return into ?? [value];
  };
  const [first, second] = [states.add(content(1)), states.add(content(2))];
  const [one, two] = [states.contentOf(first), states.contentOf(second)];
  first[Symbol.dispose]();
  first[Symbol.dispose]();
  const [third, fourth] = [states.add(content(3)), states.add(content(4))];
  expect(states.contentOf(third)).toBe(one);
  expect([one, two, states.contentOf(fourth)]).toEqual([[3], [2], [4]]);
});

test("an array that can't be had is a MemoryError, and nothing is held", () => {
  const states = new HeldStates<Float32Array>(2 ** 52);
  const hold = () => states.add(() => new Float32Array(2 ** 50));
  expect(hold).toThrow(MemoryError);
  expect(hold).toThrow(/A held state takes 4294967296.0 MiB, 0.0 MiB are free/);
  const bug = new TypeError("a bug");
  expect(() =>
    states.add(() => {
      throw bug;
    }),
  ).toThrow(bug);
  expect(states.size).toBe(0);
});

test("a held state is as large as the states and histories of its layers", () => {
  const linear = { linearKeyHeads: 2, linearValueHeads: 4, linearKeyDim: 8, linearValueDim: 16 };
  const shape = tinyShape({ ...linear, convTaps: 4, layerTypes: ["linear", "full", "linear"] });
  // Channels: queries and keys of 2 heads each, values of 4.
  const [state, history] = [4 * 8 * 16, 3 * (2 * 16 + 64)];
  expect(heldBytes(shape)).toBe(2 * 4 * (state + history));
});
