import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { runLine, type TestIo, testIo } from "../io.cases.ts";
import { runProgram } from "../program.ts";

interface Running {
  readonly io: TestIo;
  readonly url: string;
  /** Sends a signal and returns the exit code. */
  stop(signal: "SIGINT" | "SIGTERM"): Promise<number>;
}

let running: Running | null = null;
afterEach(async () => {
  await running?.stop("SIGTERM");
  running = null;
});

async function start(...flags: string[]): Promise<Running> {
  const io = testIo();
  const code = runProgram(["serve", "--port", "0", "--threads", "1", ...flags], io);
  await Promise.race([io.stdout.until("\n"), code]);
  const url = /http:\/\/[^/\s]+/.exec(io.stdout.text)?.[0] ?? "";
  running = {
    io,
    url,
    stop: (signal) => {
      io.signals.emit(signal);
      return code;
    },
  };
  return running;
}

const post = (url: string, body: object): Promise<Response> =>
  fetch(url, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });

describe("serve", () => {
  it("prints what it serves and a request that works, and ends at SIGINT", async () => {
    const { io, stop } = await start("--max-tokens", "5", "--temperature", "0");
    expect(io.stdout.text).toMatch(/^serving nano at http:\/\/127\.0\.0\.1:\d+\/v1\n/);
    expect(io.stdout.text).toMatch(/backend {2}wasm: 1 thread \(.*f32 activations\)/);
    expect(io.stdout.text).toMatch(
      / streams {2}8 at once; 64 more may wait; prompt cache of 1\.0 GiB\n/,
    );
    expect(io.stdout.text).toMatch(
      /weights \+ .* state \+ .* KV \+ .* workspace \+ 1\.0 GiB cached states at most = .* of .* available\n/,
    );
    const [, target = "", body = ""] = /curl (\S+) .* -d '(.*)'\n$/.exec(io.stdout.text) ?? [];
    const response = await post(target, JSON.parse(body));
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({
      choices: [{ finish_reason: "length" }],
      usage: { completion_tokens: 5 },
    });
    expect(await stop("SIGINT")).toBe(0);
    expect(io.stderr.text).toBe("stopping\n");
    await expect(fetch(target)).rejects.toThrow();
  });

  it("serves as many at once as it was told, and refuses more than the queue holds", async () => {
    const { io, url } = await start(
      ...["--parallel", "1", "--queue", "0", "--prompt-cache-gib", "0", "--kv-gib", "0.01"],
    );
    expect(io.stdout.text).toContain("streams  1 at once; 0 more may wait; no prompt cache\n");
    expect(io.stdout.text).toMatch(/KV \+ .* workspace = /);
    const body = { prompt: "Once", max_tokens: 4000, ignore_eos: true };
    const first = await post(`${url}/v1/completions`, { ...body, stream: true });
    const refused = await post(`${url}/v1/completions`, body);
    expect(refused.status).toBe(429);
    expect(refused.headers.get("Retry-After")).toBe("1");
    await first.body!.cancel();
  });

  it("says both numbers where what was asked for doesn't fit", async () => {
    const refused = await runLine(["serve", "--port", "0", "--prompt-cache-gib", "9"]);
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toMatch(/^deltafold: The model needs .* MiB, .* MiB are free\. .*\n$/m);
  });

  it("ends the replies in progress when it stops", async () => {
    const { io, url, stop } = await start("--quiet");
    expect(io.stdout.text).toBe(`${url}\n`);
    const response = await post(`${url}/v1/completions`, {
      model: "nano",
      prompt: "Once",
      stream: true,
      max_tokens: 4000,
      ignore_eos: true,
    });
    const text = response.text();
    expect(await stop("SIGTERM")).toBe(0);
    expect(await text).toMatch(/"code":"cancelled".*data: \[DONE\]\n\n$/s);
    expect(io.stderr.text).toBe("");
  });

  it("warns where other machines can connect", async () => {
    const { io } = await start("--host", "0.0.0.0", "--quiet");
    expect(io.stderr.text).toMatch(/^warning: 0\.0\.0\.0 is open to other machines/);
  });

  it("says in one line that a port is in use", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => other.once("listening", resolve));
    const { port } = other.address() as AddressInfo;
    const refused = await runLine(["serve", "--port", String(port)]);
    other.close();
    const reason = `port ${port} is in use; choose another with --port.`;
    const stderr = `deltafold: Can't listen at 127.0.0.1: ${reason}\n`;
    expect(refused).toEqual({ code: 1, stdout: "", stderr });
  });

  it("gives the port back where loading fails", async () => {
    const refused = await runLine(["serve", "./missing", "--port", "0"]);
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toMatch(/^deltafold: .*missing: does not exist\n$/);
  });
});
