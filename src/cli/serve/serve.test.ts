import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, request as httpRequest } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { RequestEntry } from "../../serve/request-log.ts";
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
  await running?.stop("SIGINT");
  running = null;
  vi.unstubAllEnvs();
});

const start = (...flags: string[]): Promise<Running> => startOn(testIo(), flags);

async function startOn(io: TestIo, flags: readonly string[]): Promise<Running> {
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

const post = (url: string, body: object, headers = {}): Promise<Response> =>
  fetch(url, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...headers },
    body: JSON.stringify(body),
  });

const endless = { prompt: "Once", stream: true, max_tokens: 4000, ignore_eos: true };

/** The status of a request that was sent to another host's name. */
function statusFor(url: string, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const asked = httpRequest(`${url}/v1/models`, { headers: { Host: host } }, (response) => {
      response.resume();
      resolve(response.statusCode!);
    });
    asked.once("error", reject).end();
  });
}

describe("serve", () => {
  it("prints what it serves and a request that works, and ends at SIGINT", async () => {
    const flags = ["--max-tokens", "5", "--temperature", "0", "--memory-gib", "3"];
    const { io, stop } = await start(...flags);
    expect(io.stdout.text).toMatch(/^serving nano at http:\/\/127\.0\.0\.1:\d+\/v1\n/);
    expect(io.stdout.text).toMatch(/backend {2}wasm: 1 thread \(.*f32 activations\)/);
    expect(io.stdout.text).toMatch(
      / streams {2}8 at once; 64 more may wait; prompt cache of 1\.0 GiB\n/,
    );
    expect(io.stdout.text).toMatch(
      /weights \+ .* state \+ .* KV \+ .* workspace \+ 1\.0 GiB cached states at most = .* of 3\.0 GiB available\n/,
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
    const first = await post(`${url}/v1/completions`, endless);
    const refused = await post(`${url}/v1/completions`, { ...endless, stream: false });
    expect(refused.status).toBe(429);
    expect(refused.headers.get("Retry-After")).toBe("1");
    await first.body!.cancel();
  });

  it("says both numbers where what was asked for doesn't fit", async () => {
    const refused = await runLine(["serve", "--port", "0", "--prompt-cache-gib", "9"]);
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toMatch(/^deltafold: The model needs .* MiB, .* [\d.]+ MiB\. .*\n$/m);
  });

  it.each([
    ["SIGINT", []],
    ["SIGTERM", ["--drain-seconds", "0"]],
  ] as const)("ends the replies in progress at %s with %j", async (signal, flags) => {
    const { io, url, stop } = await start("--quiet", ...flags);
    expect(io.stdout.text).toBe(`${url}\n`);
    const text = (await post(`${url}/v1/completions`, endless)).text();
    expect(await stop(signal)).toBe(0);
    expect(await text).toMatch(/"code":"cancelled".*data: \[DONE\]\n\n$/s);
    expect(io.stderr.text).toBe("");
  });

  it("lets replies end at SIGTERM, and says meanwhile that it isn't ready", async () => {
    const { io, url, stop } = await start();
    const body = { ...endless, max_tokens: 600 };
    const response = await post(`${url}/v1/completions`, body);
    const code = stop("SIGTERM");
    await io.stderr.until("stopping: 1 to end, within 30 s\n");
    const ready = await fetch(`${url}/health/ready`);
    expect([ready.status, ready.headers.get("Retry-After")]).toEqual([503, "1"]);
    expect(await ready.json()).toEqual({ status: "stopping" });
    expect((await fetch(`${url}/health/live`)).status).toBe(200);
    const refused = await post(`${url}/v1/completions`, body);
    expect(refused.status).toBe(503);
    expect(await refused.json()).toMatchObject({ error: { code: "stopping" } });
    expect(await response.text()).toMatch(/"finish_reason":"length".*data: \[DONE\]\n\n$/s);
    expect(await code).toBe(0);
    await expect(fetch(`${url}/health/ready`)).rejects.toThrow();
    // A second signal would have ended it at once.
    expect(["SIGINT", "SIGTERM"].map((name) => io.signals.listenerCount(name))).toEqual([0, 0]);
  });

  it("refuses to be open to other machines without a key, unless it may", async () => {
    const host = ["--host", "0.0.0.0"];
    const refused = await runLine(["serve", "--port", "0", ...host, "--quiet"]);
    expect(refused).toEqual({
      code: 1,
      stdout: "",
      stderr:
        "deltafold: 0.0.0.0 is open to other machines: give --api-key-file FILE or " +
        "DELTAFOLD_API_KEY, or --allow-no-key to serve whoever comes.\n",
    });
    const open = await start(...host, "--quiet", "--allow-no-key");
    const warning = "warning: 0.0.0.0 is open to other machines, and requests need no key.\n";
    expect(open.io.stderr.text).toBe(warning);
    await open.stop("SIGINT");
    vi.stubEnv("DELTAFOLD_API_KEY", "sk-secret");
    const keyed = await start(...host);
    expect(keyed.io.stderr.text).toBe("");
    expect(keyed.io.stdout.text).toContain(' -H "Authorization: Bearer $DELTAFOLD_API_KEY" ');
    // Whatever name such a server has.
    expect(await statusFor(keyed.url, "any.example")).toBe(401);
  });

  it("lets in who has a key, wherever it was given", async () => {
    const folder = mkdtempSync(join(tmpdir(), "deltafold-serve-"));
    const file = join(folder, "keys");
    writeFileSync(file, "ann: sk-ann", { mode: 0o600 });
    const { io, url } = await start(
      "--api-key",
      "sk-1",
      "--api-key",
      "sk-2",
      "--api-key-file",
      file,
    );
    expect(io.stdout.text).toContain(' -H "Authorization: Bearer YOUR_KEY" ');
    const status = async (key: string) =>
      (await fetch(`${url}/v1/models`, { headers: { Authorization: `Bearer ${key}` } })).status;
    const statuses = () => Promise.all(["sk-1", "sk-2", "sk-ann", "sk-ben"].map(status));
    expect(await statuses()).toEqual([200, 200, 200, 401]);
    expect((await fetch(`${url}/v1/models`)).status).toBe(401);
    expect((await fetch(`${url}/metrics`)).status).toBe(401);
    expect(await (await fetch(`${url}/health`)).json()).toEqual({ status: "ok" });
    writeFileSync(file, "ben: sk-ben");
    io.signals.emit("SIGHUP");
    expect(await statuses()).toEqual([200, 200, 401, 200]);
    expect(io.stderr.text).toContain(`The keys of ${file} were read again.\n`);
    expect(io.stdout.text + io.stderr.text).not.toContain("sk-");
    rmSync(folder, { recursive: true });
  });

  it("refuses a key that is empty, which was meant to close it", async () => {
    vi.stubEnv("DELTAFOLD_API_KEY", "");
    const refused = await runLine(["serve", "--port", "0"]);
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toMatch(
      /^deltafold: The API key DELTAFOLD_API_KEY must be 1 to 256 .* it is empty/,
    );
  });

  it("refuses a file of keys without a name, which was meant to close it", async () => {
    vi.stubEnv("DELTAFOLD_API_KEY_FILE", "");
    const refused = await runLine(["serve", "--port", "0"]);
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toBe(
      "deltafold: option '--api-key-file <file>' value '' from env 'DELTAFOLD_API_KEY_FILE' is " +
        "invalid. It must be the path of a file, and it is empty.\n",
    );
  });

  it("is called by its own names, and those it was given", async () => {
    const { url } = await start("--allow-host", "box.lan", "--metrics-open");
    const statuses = ["localhost", "127.0.0.1:1", "box.lan", "rebound.example", "0.0.0.0"].map(
      (host) => statusFor(url, host),
    );
    expect(await Promise.all(statuses)).toEqual([200, 200, 200, 403, 403]);
    expect((await fetch(`${url}/metrics`)).status).toBe(200);
  });

  it("writes a line a request where it was told to", async () => {
    const { io, url } = await start("--log", "json", "--cors-origin", "https://a.example");
    const headers = { "X-Request-Id": "mine", Origin: "https://a.example" };
    const body = { prompt: "Once", max_tokens: 3, ignore_eos: true };
    const response = await post(`${url}/v1/completions`, body, headers);
    expect(response.headers.get("Access-Control-Allow-Origin")).toBe("https://a.example");
    await io.stderr.until("\n");
    const entry = JSON.parse(io.stderr.text) as RequestEntry;
    expect(entry).toMatchObject({
      ...{ id: "mine", method: "POST", path: "/v1/completions", status: 200 },
      ...{ prompt_tokens: 1, reply_tokens: 3, finish_reason: "length" },
    });
    expect(entry.total_ms).toBeGreaterThanOrEqual(entry.first_token_ms!);
  });

  it("says all else in JSON there too", async () => {
    const flags = ["--host", "0.0.0.0", "--allow-no-key", "--log", "json"];
    const { io, stop } = await start(...flags);
    expect(await stop("SIGINT")).toBe(0);
    const said = io.stderr.text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as object);
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    const message = "0.0.0.0 is open to other machines, and requests need no key.";
    expect(said).toEqual([
      { time, level: "warning", message },
      { time, level: "info", message: "stopping" },
    ]);
  });

  it("shows on a terminal how it does, and who asked for what", async () => {
    const { io, url, stop } = await startOn(testIo(true), []);
    await io.stderr.until("0 running, 0 waiting · ");
    await post(`${url}/v1/completions`, { prompt: "Once", max_tokens: 3 });
    const at = await io.stderr.until(" POST /v1/completions 200 total_ms=");
    await io.stderr.until("0 running, 0 waiting · ", at);
    expect(await stop("SIGINT")).toBe(0);
    expect(io.stderr.text.endsWith("\r\x1b[2K")).toBe(true);
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
