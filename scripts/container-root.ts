/**
 * `npm run test:container`: what the Dockerfile makes, without Docker: a Debian that debootstrap made, the
 * same install script in it and the same package, started by the Dockerfile's own words, as its user, on a
 * read-only root. It must become ready, answer, and drain at SIGTERM. Expects a built clone, and root.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { pause } from "../src/clock.ts";
import { install, mirror } from "./apt.ts";
import { Container } from "./container/container.ts";
import { type Image, readImage } from "./container/image.ts";
import { answered, post, Stream, user } from "./replicas/client.ts";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));

/** Whether there is a debootstrap afterwards that may be used. */
function installDebootstrap(): boolean {
  if (process.getuid?.() !== 0 || !existsSync("/etc/debian_version")) return false;
  const isHere = () => existsSync("/usr/sbin/debootstrap");
  return install("debootstrap", isHere, "no root can be made");
}

/** Makes the root as the Dockerfile does, of the release that its last stage names. */
function build(root: string, release: string): void {
  const url = mirror()?.url;
  const run = (program: string, ...args: string[]) =>
    // The package is to have the Node that runs this.
    execFileSync(program, args, {
      stdio: ["ignore", "ignore", "pipe"],
      env: { ...process.env, PATH: `${dirname(process.execPath)}:${process.env["PATH"]}` },
    });
  run("debootstrap", "--variant=minbase", release, root, ...(url ? [url] : []));
  copyFileSync("deploy/container/install.sh", join(root, "tmp/install.sh"));
  run(
    "chroot",
    root,
    "/usr/bin/env",
    "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
    "sh",
    "/tmp/install.sh",
  );
  run("sh", "deploy/container/package.sh", join(root, "opt/deltafold"));
}

async function itWorks(root: string, image: Image): Promise<void> {
  await using container = await Container.start(root, image);
  const { url } = container;
  const write = ["sh", "-c", "echo > /opt/deltafold/new"];
  assert.equal(container.user, image.user);
  assert.match(container.run(write, "0:0").stderr, /Read-only file system/);
  assert.equal(container.run(image.healthcheck).status, 0, "the health check of one that is ready");

  // The driver would come from the host: that it is missing, Dawn has found.
  const { webgpu } = JSON.parse(container.run(["deltafold", "doctor", "--json"]).stdout);
  assert.match(webgpu.missing, /Install the GPU's Vulkan driver/);

  const asked = [user("What is 2 + 3?")];
  const chat = await answered(post(url, { messages: asked, temperature: 0, max_tokens: 1000 }));
  assert.ok(chat.choices[0].message.content, "the reply says something");

  const stream = await new Stream(url, asked).begun();
  const ended = container.stop();
  while ((await fetch(`${url}/health/ready`)).ok) await pause(20);
  assert.equal((await fetch(`${url}/health/live`)).status, 200);
  assert.equal(container.run(image.healthcheck).status, 1, "the health check of one that drains");
  const isRefused = async () =>
    (await post(url, { messages: asked, max_tokens: 1 })).status === 503;
  while (!(await isRefused())) await pause(200);
  const early = stream.events.length;
  assert.ok(await stream.whole, "the reply that ran came to its end");
  assert.ok(stream.events.length > early, "it ran on where others were refused");
  assert.equal(await ended, 0);
}

let passed = false;
if (installDebootstrap()) {
  const folder = mkdtempSync(join(tmpdir(), "deltafold-container-"));
  // Temporary folders are nobody else's, and this one is the container's user's too.
  const root = join(folder, "root");
  try {
    const image = readImage("deploy/container/Dockerfile");
    build(root, image.release);
    await itWorks(root, image);
    passed = true;
  } catch (error) {
    console.log(`FAIL  ${error}`);
  } finally {
    rmSync(folder, { recursive: true });
  }
} else console.log("FAIL  debootstrap isn't here, and may not be installed");
console.log(passed ? "1 passed, 0 failed" : "0 passed, 1 failed");
process.exitCode = passed ? 0 : 1;
