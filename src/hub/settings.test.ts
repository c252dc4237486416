import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { InputError } from "../errors.ts";
import { hubSettings } from "./settings-node.ts";

const home = join("/", "home", "me");
const cacheOf = async (variables: NodeJS.ProcessEnv) => (await hubSettings(variables, home)).cache;

test("the cache's folder is where Python has it", async () => {
  expect(await cacheOf({})).toBe(join(home, ".cache", "huggingface", "hub"));
  const all = {
    HF_HUB_CACHE: "/caches/hub",
    HUGGINGFACE_HUB_CACHE: "/caches/legacy",
    HF_HOME: "/caches/hf",
    XDG_CACHE_HOME: "/caches/xdg",
  };
  expect(await cacheOf(all)).toBe("/caches/hub");
  expect(await cacheOf({ ...all, HF_HUB_CACHE: "" })).toBe("/caches/legacy");
  const { HF_HOME, XDG_CACHE_HOME } = all;
  expect(await cacheOf({ HF_HOME, XDG_CACHE_HOME })).toBe(join("/caches/hf", "hub"));
  expect(await cacheOf({ XDG_CACHE_HOME })).toBe(join("/caches/xdg", "huggingface", "hub"));
  expect(await cacheOf({ HF_HUB_CACHE: "~/models" })).toBe(`${home}/models`);
  expect(await cacheOf({ HF_HUB_CACHE: "~else" })).toBe(resolve("~else"));
});

test("the token is the variable's, or else the file's", async () => {
  const folder = await mkdtemp(join(tmpdir(), "deltafold-token-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const tokenOf = async (variables: NodeJS.ProcessEnv) =>
    (await hubSettings(variables, home)).token;
  expect(await tokenOf({ HF_HOME: folder })).toBeNull();
  await writeFile(join(folder, "token"), "hf_file\n");
  expect(await tokenOf({ HF_HOME: folder })).toBe("hf_file");
  expect(await tokenOf({ HF_HOME: folder, HF_TOKEN: " hf_variable " })).toBe("hf_variable");
  expect(await tokenOf({ HF_HOME: folder, HF_TOKEN: "" })).toBe("hf_file");
  expect(await tokenOf({ HF_TOKEN_PATH: join(folder, "token") })).toBe("hf_file");
  await expect(tokenOf({ HF_TOKEN: "hf_a\nb" })).rejects.toThrow(InputError);
  await expect(tokenOf({ HF_TOKEN: "hf_a\nb" })).rejects.not.toThrow("hf_a");
});

test("the endpoint is an address", async () => {
  const endpointOf = async (HF_ENDPOINT: string) =>
    (await hubSettings({ HF_ENDPOINT }, home)).endpoint.href;
  expect(await endpointOf("")).toBe("https://huggingface.co/");
  expect(await endpointOf("https://mirror.example/hf/")).toBe("https://mirror.example/hf/");
  await expect(endpointOf("mirror.example")).rejects.toThrow(
    /HF_ENDPOINT must be an http or https/,
  );
  await expect(endpointOf("file:///models")).rejects.toThrow(InputError);
});

test.each([
  [undefined, false],
  ["", false],
  ["0", false],
  ["no", false],
  ["1", true],
  ["ON", true],
  ["yes", true],
  ["True", true],
])("the switches take %j as Python does", async (value, isOn) => {
  const variables = { HF_HUB_OFFLINE: value, HF_HUB_DISABLE_SYMLINKS: value };
  expect(await hubSettings(variables, home)).toMatchObject({ offline: isOn, symlinks: !isOn });
});
