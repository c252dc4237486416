import { expect, test } from "vitest";
import { customIdCharsMax } from "../limits.ts";
import { parseBatchLine } from "./line.ts";

const request = { custom_id: "a", method: "POST", url: "/v1/completions", body: { prompt: "x" } };
const lineOf = (changes: object) => JSON.stringify({ ...request, ...changes });

test("a request of OpenAI's format", () => {
  expect(parseBatchLine(lineOf({ more: 1 }))).toEqual({
    customId: "a",
    url: "/v1/completions",
    body: { prompt: "x" },
  });
});

test.each([
  ["", "it is not valid JSON"],
  ['{"custom_id": "a"', "it is not valid JSON"],
  ["[1]", "it must be an object, not [1]"],
  ["[".repeat(100_000), "it is nested too deep"],
  [
    lineOf({ custom_id: undefined }),
    "custom_id must be a string of 1 to 512 characters, not nothing",
  ],
  [lineOf({ custom_id: 7 }), "custom_id must be"],
  [lineOf({ custom_id: "" }), 'not ""'],
  [lineOf({ custom_id: "x".repeat(customIdCharsMax + 1) }), "custom_id must be"],
  [lineOf({ method: "GET" }), 'method must be "POST", not "GET"'],
  [lineOf({ url: "/v1/models" }), 'not "/v1/models"'],
  [lineOf({ url: "http://elsewhere/v1/completions" }), "url must be one of /v1/chat/completions,"],
  [lineOf({ body: [] }), "body must be an object, not []"],
  [lineOf({ body: { stream: true } }), "body.stream must not be true"],
  [lineOf({ body: { previous_response_id: "r" } }), "body.previous_response_id names"],
])("%j is no request", (text, message) => {
  expect(() => parseBatchLine(text)).toThrow(message);
});
