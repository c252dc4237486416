import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  rmSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Captured } from "./io.cases.ts";

const main = join(import.meta.dirname, "main.ts");
const launcher = join(import.meta.dirname, "../../bin/deltafold.js");

describe("the process", () => {
  it("ends without a word when nobody reads on", async () => {
    const child = spawn(process.execPath, [main, "run", "-p", "Tell me a story.", "--quiet"]);
    child.stdout.destroy();
    const stderr = child.stderr.pipe(new Captured(false));
    const [code] = await once(child, "close");
    expect({ code, stderr: stderr.text }).toEqual({ code: 141, stderr: "" });
  });

  it
    .skipIf(!existsSync("/dev/full"))
    .each([
      ["show", "nano"],
      ["run", "--ids", "[40,1015]", "--max-tokens", "3", "--quiet"],
      ["--help"],
    ])("says in one line that its output can't be written: %s", (...args) => {
    const full = openSync("/dev/full", "w");
    const { status, stderr } = spawnSync(process.execPath, [main, ...args], {
      encoding: "utf8",
      stdio: ["ignore", full, "pipe"],
    });
    closeSync(full);
    expect(status).toBe(1);
    expect(stderr).toMatch(/^deltafold: The output can't be written: .*ENOSPC.*\n$/);
  });

  it("ends by SIGINT without a word while it replies", async () => {
    const line = [main, "run", "-p", "x", "--ignore-eos", "--backend", "reference"];
    const child = spawn(process.execPath, line);
    const stderr = child.stderr.pipe(new Captured(false));
    await once(child.stdout, "data");
    child.kill("SIGINT");
    const [code, signal] = await once(child, "close");
    expect({ code, signal, stderr: stderr.text }).toEqual({
      code: null,
      signal: "SIGINT",
      stderr: "",
    });
  });
});

describe.skipIf(!hasScript())("on a terminal", () => {
  it("stops the reply at Ctrl-C, and is without colours if asked", async () => {
    // Without exec, a dash that waits for the process gets the Ctrl-C too, and dies of it afterwards.
    const command = `exec '${process.execPath}' '${main}' run --ignore-eos --threads 1`;
    const env = { ...process.env, SHELL: "/bin/sh", NO_COLOR: "1", FORCE_COLOR: undefined };
    const child = spawn("script", ["-qec", command, "/dev/null"], { env });
    const screen = child.stdout.pipe(new Captured(false));
    let at = await screen.until("> ");
    child.stdin.write("Tell me a story.\r");
    at = await screen.until("story.", at);
    at = await screen.until(" ", at + 2);
    child.stdin.write("\x03");
    at = await screen.until("stopped", at);
    at = await screen.until("> ", at);
    child.stdin.write("/exit\r");
    const [code] = await once(child, "close");
    expect(code).toBe(0);
    expect(screen.text).not.toContain("\x1b[2m");
  });
});

/** Whether util-linux's `script` is there to make a terminal with. */
function hasScript(): boolean {
  try {
    return execFileSync("script", ["--version"], { encoding: "utf8" }).includes("util-linux");
  } catch {
    return false;
  }
}

describe("bin/deltafold.js", () => {
  let root = "";
  let copy = "";
  beforeAll(() => {
    root = mkdtempSync(join(tmpdir(), "deltafold-bin-"));
    mkdirSync(join(root, "bin"));
    copy = join(root, "bin/deltafold.mjs");
    copyFileSync(launcher, copy);
  });
  afterAll(() => rmSync(root, { recursive: true }));

  const launch = (...options: string[]) => {
    const { status, stderr } = spawnSync(process.execPath, [...options, copy], {
      encoding: "utf8",
    });
    return { status, stderr };
  };

  it("says what to do where nothing is built", () => {
    const stderr = "deltafold: dist/ is not built: run `npm run build`.\n";
    expect(launch()).toEqual({ status: 1, stderr });
  });

  it("says which Node it needs", () => {
    const old = 'Object.defineProperty(process, "versions", { value: { node: "22.17.1" } });';
    const stderr = "deltafold: needs Node 22.18 or newer, and this is Node 22.17.1.\n";
    expect(launch("--import", `data:text/javascript,${old}`)).toEqual({ status: 1, stderr });
  });
});
