import { expect, test } from "vitest";
import { hubNameText, parseHubName, repoFolder, repoOfFolder } from "./names.ts";

test.each([
  ["org/name", { repo: "org/name", revision: null }],
  ["Qwen/Qwen3.5-2B", { repo: "Qwen/Qwen3.5-2B", revision: null }],
  ["o/n@main", { repo: "o/n", revision: "main" }],
  ["o/n@refs/pr/1", { repo: "o/n", revision: "refs/pr/1" }],
  ["o/n@v1.0+mlx", { repo: "o/n", revision: "v1.0+mlx" }],
])("%s is a name", (text, name) => {
  expect(parseHubName(text)).toEqual(name);
});

test.each([
  "nano",
  "/org/name",
  "./org/name",
  "../name",
  "org/..",
  "org/name/",
  "org/name/more",
  "org\\name",
  "org/na me",
  "org/-name",
  "org/name.",
  "org/name.git",
  "org/na--me",
  "org/na..me",
  "org/名前",
  `org/${"n".repeat(97)}`,
  "https://huggingface.co/org/name",
  "",
])("%s is none", (text) => {
  expect(parseHubName(text)).toBeNull();
});

test("names are typed as short as they can be", () => {
  expect(hubNameText({ repo: "o/n", revision: null })).toBe("o/n");
  expect(hubNameText({ repo: "o/n", revision: "main" })).toBe("o/n");
  expect(hubNameText({ repo: "o/n", revision: "v1" })).toBe("o/n@v1");
});

test("folders of the cache have names, and names have folders", () => {
  expect(repoFolder("org/a-name_1.5")).toBe("models--org--a-name_1.5");
  expect(repoOfFolder("models--org--a-name_1.5")).toBe("org/a-name_1.5");
  for (const other of [
    "models--gpt2",
    "datasets--org--name",
    ".locks",
    "models--a--b--c",
    "models--..--x",
  ]) {
    expect(repoOfFolder(other)).toBeNull();
  }
});
