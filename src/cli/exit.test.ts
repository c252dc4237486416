import { expect, it } from "vitest";
import { InputError, InvariantError } from "../errors.ts";
import { exitCodeOf, InterruptedError } from "./exit.ts";
import { Captured } from "./io.cases.ts";

function reported(error: unknown): { code: number; text: string } {
  const stderr = new Captured(false);
  return { code: exitCodeOf(error, stderr), text: stderr.text };
}

it("reports a user's error in one line", () => {
  expect(reported(new InputError("no\n  such thing"))).toEqual({
    code: 1,
    text: "deltafold: no such thing\n",
  });
});

it("tells an interruption apart", () => {
  expect(reported(new InterruptedError("stopped")).code).toBe(130);
});

it.each([new InvariantError("broken"), new TypeError("x is undefined")])(
  "reports a bug with its stack %#",
  (error) => {
    const { code, text } = reported(error);
    expect(code).toBe(1);
    expect(text).toMatch(/\n {4}at /);
  },
);
