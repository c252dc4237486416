import { expect, test } from "vitest";
import { exposition, Histogram, LabelledCounter } from "./exposition.ts";

test("families have help, a type and their samples", () => {
  const text = exposition([
    { name: "a_total", type: "counter", help: "First.", samples: [{ labels: {}, value: 3 }] },
    { name: "none", type: "gauge", help: "Nothing is known of it.", samples: [] },
    {
      ...{ name: "v:b", type: "gauge", help: "Second." },
      samples: [
        { labels: { x: "1", y: "2" }, value: 0.25 },
        { labels: { x: "2", y: "2" }, value: 1e-7 },
      ],
    },
  ]);
  expect(text).toBe(
    [
      ...["# HELP a_total First.", "# TYPE a_total counter", "a_total 3"],
      ...["# HELP v:b Second.", "# TYPE v:b gauge"],
      ...['v:b{x="1",y="2"} 0.25', 'v:b{x="2",y="2"} 1e-7', ""],
    ].join("\n"),
  );
  expect(exposition([])).toBe("");
});

test("what labels and help say ends no line and no string", () => {
  const samples = [{ labels: { model: 'a"b\\c\nd} 1' }, value: 1 }];
  const text = exposition([{ name: "a", type: "gauge", help: "One\\two\nthree.", samples }]);
  expect(text.split("\n")).toEqual([
    "# HELP a One\\\\two\\nthree.",
    "# TYPE a gauge",
    'a{model="a\\"b\\\\c\\nd} 1"} 1',
    "",
  ]);
});

test("a counter counts by its labels", () => {
  const counter = new LabelledCounter();
  expect(counter.samples).toEqual([]);
  for (const status of ["200", "404", "200"]) counter.add({ route: "/a", status });
  counter.add({ route: "/b", status: "200" });
  expect(counter.samples).toEqual([
    { labels: { route: "/a", status: "200" }, value: 2 },
    { labels: { route: "/a", status: "404" }, value: 1 },
    { labels: { route: "/b", status: "200" }, value: 1 },
  ]);
});

test("a histogram's buckets hold what is at most their bound", () => {
  const histogram = new Histogram([0.5, 1, 2]);
  for (const value of [0, 0.5, 0.75, 2, 2.25, 100]) histogram.observe(value);
  const labels = { model: "m" };
  const bucket = (le: string, value: number) => ({
    ...{ suffix: "_bucket", labels: { model: "m", le }, value },
  });
  expect(histogram.samples(labels)).toEqual([
    ...[bucket("0.5", 2), bucket("1", 3), bucket("2", 4), bucket("+Inf", 6)],
    { suffix: "_sum", labels, value: 105.5 },
    { suffix: "_count", labels, value: 6 },
  ]);
});

test("a histogram without values says so", () => {
  expect(new Histogram([1]).samples({}).map(({ value }) => value)).toEqual([0, 0, 0, 0]);
});
