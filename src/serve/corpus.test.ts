import { expect, test } from "vitest";
import { corpusFiles, read } from "./corpus-files.cases.ts";

test.each(corpusFiles)("$name are answered as they were", async (file) => {
  const exchanges = await file.record();
  const before = await read(file);
  // One by one, so that a difference is told with its exchange.
  for (const [index, exchange] of exchanges.entries()) expect(exchange).toBe(before[index]);
  expect(exchanges).toHaveLength(before.length);
});

test("what must be refused is recorded as refused", async () => {
  const errors = corpusFiles.find(({ name }) => name === "errors")!;
  const statuses = (await read(errors)).map((exchange) => /^< (\d{3})$/m.exec(exchange)![1]!);
  expect(statuses.filter((status) => Number(status) < 400)).toEqual([]);
});

test("there are enough of them", async () => {
  const counts = await Promise.all(corpusFiles.map(async (file) => (await read(file)).length));
  expect(counts.reduce((sum, count) => sum + count)).toBeGreaterThan(300);
});
