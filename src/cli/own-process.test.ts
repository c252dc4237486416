import { expect, test, vi } from "vitest";
import { outputOf, ownProgram, ServerProcess } from "./own-process.ts";

test("what a command prints", async () => {
  expect(await outputOf(ownProgram, ["--version"])).toMatch(/^\d+\.\d+\.\d+\n$/);
});

test("a command that fails is told with its own words", async () => {
  await expect(outputOf(ownProgram, ["run", "/nowhere", "-p", "x"])).rejects.toThrow(
    /^deltafold run \/nowhere -p x ended with 1: .*\/nowhere/s,
  );
});

test("a server ends with its owner, and variables don't change it", async () => {
  vi.stubEnv("DELTAFOLD_CONTEXT", "no number");
  const server = await ServerProcess.start(ownProgram, ["--threads", "1", "--context", "256"]);
  vi.unstubAllEnvs();
  const health = await (await fetch(`${server.url}/health`)).json();
  expect(health).toMatchObject({ model: "nano" });
  await server[Symbol.asyncDispose]();
  await expect(fetch(server.url)).rejects.toThrow();
});

test("a server ends by the signal that it is sent", async () => {
  const server = await ServerProcess.start(ownProgram, ["--threads", "1", "--context", "256"]);
  expect(await server.end("SIGKILL")).toBe("SIGKILL");
  await expect(fetch(server.url)).rejects.toThrow();
});

test("a server that never serves is told", async () => {
  await expect(ServerProcess.start(ownProgram, ["/nowhere"])).rejects.toThrow(
    /^deltafold serve --port 0 \/nowhere --quiet ended with 1: .*\/nowhere/s,
  );
});
