import { expect, test } from "vitest";
import { z } from "zod";
import { list } from "./fields.ts";

test("a list is read up to its first fault", () => {
  const read: unknown[] = [];
  const item = z.custom<number>((value) => {
    read.push(value);
    return value !== "bad";
  });
  const { error } = list(item).safeParse([1, 2, "bad", "bad", 3]);
  expect(error?.issues.map(({ path }) => path)).toEqual([[2]]);
  expect(read).toEqual([1, 2, "bad"]);
});
