import { readFileSync } from "node:fs";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { openEngine } from "../node.ts";
import { complete, findChromium, launch, openPage, ready, softwareGpu } from "./chromium.cases.ts";
import { Bundle, servePages } from "./pages.cases.ts";
import type { TestServer } from "./server.cases.ts";

const weightsFile = "/models/nano/model.safetensors";

/** Greedy ids by transformers for nano's 4-bit weights; every margin of this case is over 5. */
const golden = (
  JSON.parse(
    readFileSync(new URL("../../fixtures/golden/nano_greedy.json", import.meta.url), "utf8"),
  ) as { runs: { q4: { name: string; prompt_ids: number[]; greedy_ids: number[] }[] } }
).runs.q4.find(({ name }) => name === "arithmetic")!;
const prompt = golden.prompt_ids;
const maxTokens = golden.greedy_ids.length;

const executable = findChromium();
if (executable === null) test.skip("browser: there is no chromium", () => {});
else browserTests(executable);

function browserTests(executable: string): void {
  let bundle: Bundle;
  let server: TestServer;
  let browser: Browser;
  let gpuBrowser: Browser;
  const contexts: BrowserContext[] = [];

  beforeAll(async () => {
    bundle = await Bundle.make();
    server = await servePages(bundle);
    browser = await launch(executable);
    gpuBrowser = await launch(executable, softwareGpu);
  });
  afterEach(async () => {
    for (const context of contexts.splice(0)) await context.close();
  });
  afterAll(async () => {
    await browser?.close();
    await gpuBrowser?.close();
    await server?.[Symbol.asyncDispose]();
    await bundle?.[Symbol.asyncDispose]();
  });

  /** A page with a file system of its own. */
  async function fresh(path: string, from: Browser = browser): Promise<Page> {
    const context = await from.newContext();
    contexts.push(context);
    return await openPage(context, `${server.url}${path}`);
  }

  /** Bytes of the weights that were sent since the last call. */
  function weightBytes(): number {
    const asked = server.asked.splice(0).filter(({ path }) => path === weightsFile);
    expect(asked.length).toBeGreaterThan(0);
    return asked.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  test("wasm on threads draws what transformers and Node draw", async () => {
    await using engine = await openEngine("nano", { backend: "wasm", threads: 2 });
    const node = await engine.complete({ prompt, maxTokens, temperature: 0 }).result;
    const page = await fresh("/isolated/");
    const reply = await complete(page, prompt, maxTokens, { backend: "wasm", threads: 2 });
    expect(reply).toMatchObject({ backend: "wasm", device: "2 threads" });
    expect(reply.ids).toEqual(golden.greedy_ids);
    expect(reply.ids).toEqual(node.ids);
  });

  test("webgpu, without isolation, draws what transformers and Node draw", async () => {
    const page = await fresh("/plain/", gpuBrowser);
    const reply = await complete(page, prompt, 6, {
      backend: "webgpu",
      contextTokens: 256,
      // To measure what windows cost takes a software GPU minutes.
      drafts: false,
    });
    expect(reply.backend).toBe("webgpu");
    expect(reply.device).toMatch(/swiftshader/i);
    expect(reply.ids).toEqual(golden.greedy_ids.slice(0, 6));
    // A GPU in software, and perhaps a busy machine.
  }, 240_000);

  test("auto takes wasm without a GPU, and where the browser imitates one", async () => {
    for (const from of [browser, gpuBrowser]) {
      const page = await fresh("/isolated/", from);
      expect(await complete(page, prompt, 1, {})).toMatchObject({ backend: "wasm" });
    }
  });

  test("webgpu without an adapter is refused with a way out", async () => {
    const page = await fresh("/isolated/");
    const refused = complete(page, prompt, 1, { backend: "webgpu" });
    await expect(refused).rejects.toThrow(/no WebGPU adapter/);
  });

  test("the second load takes the weights from the cache; damaged blocks come anew", async () => {
    const page = await fresh("/isolated/");
    server.asked.length = 0;
    const first = await complete(page, prompt, 4, {});
    expect(weightBytes()).toBeGreaterThan(12_000_000);
    await page.reload();
    await ready(page);
    expect(await complete(page, prompt, 4, {})).toEqual(first);
    // To learn whether the file has changed.
    expect(weightBytes()).toBe(2);
    const damaged = await page.evaluate(truncateLargest);
    expect(damaged).toBeGreaterThan(8_000_000);
    expect(await complete(page, prompt, 4, {})).toEqual(first);
    expect(weightBytes()).toBe(2 + 2 ** 23);
    await page.evaluate(() =>
      (globalThis as unknown as { deltafold: typeof import("../web.ts") }).deltafold.clearCache(),
    );
    expect(await complete(page, prompt, 4, { cache: false })).toEqual(first);
    expect(weightBytes()).toBeGreaterThan(12_000_000);
    expect(await complete(page, prompt, 4, {})).toEqual(first);
    expect(weightBytes()).toBeGreaterThan(12_000_000);
  });

  test("works where the browser denies its file system", async () => {
    const page = await fresh("/isolated/");
    await page.evaluate(() => {
      navigator.storage.getDirectory = () => Promise.reject(new Error("denied"));
    });
    const reply = await complete(page, prompt, 4, { backend: "wasm" });
    expect(reply.ids).toEqual(golden.greedy_ids.slice(0, 4));
  });

  test("a page that isn't isolated has one thread, and is told how to have more", async () => {
    const page = await fresh("/plain/");
    expect(await page.evaluate(() => globalThis.crossOriginIsolated)).toBe(false);
    const reply = await complete(page, prompt, maxTokens, { backend: "wasm" });
    expect(reply.device).toBe("1 thread");
    expect(reply.ids).toEqual(golden.greedy_ids);
    const refused = complete(page, prompt, 1, { backend: "wasm", threads: 2 });
    await expect(refused).rejects.toThrow(/Cross-Origin-Opener-Policy: same-origin/);
  });

  test("the files of dist/ work in a page as they are", async () => {
    const page = await fresh("/unbundled/");
    const reply = await complete(page, prompt, 4, { backend: "wasm", threads: 2 });
    expect(reply.ids).toEqual(golden.greedy_ids.slice(0, 4));
  });

  test("the page in docs/web.md works", async () => {
    const page = await browser.newPage();
    await page.goto(`${server.url}/isolated/example.html`);
    await page.waitForFunction('document.body.textContent.includes("The answer is 42.")');
    await page.close();
  });

  test("runs in a worker of the page's own", async () => {
    const page = await fresh("/isolated/");
    const task = [
      { backend: "wasm", threads: 2 },
      { prompt, maxTokens: 4, temperature: 0 },
    ];
    const reply = await page.evaluate((task) => {
      const { startWorker } = globalThis as unknown as { startWorker: () => Worker };
      const worker = startWorker();
      worker.postMessage(task);
      return new Promise((resolve, reject) => {
        worker.addEventListener("message", ({ data }) => resolve(data));
        worker.addEventListener("error", ({ message }) => reject(new Error(message)));
      });
    }, task);
    expect(reply).toEqual({ ids: golden.greedy_ids.slice(0, 4), device: "2 threads" });
  });

  test.each([
    ["the kernels", /kernels.*\.wasm$/, /kernels are not at http.*\.wasm: .* status 404/],
    ["the thread's script", /worker-web.*\.js$/, /Only 0 of 2 .*script could not be loaded/],
  ])("says so where %s can't be had", async (_, file, message) => {
    const page = await fresh("/isolated/");
    await page.route(file, (route) => route.fulfill({ status: 404 }));
    const failed = complete(page, prompt, 1, { backend: "wasm", threads: 2 });
    await expect(failed).rejects.toThrow(message);
  });

  test("a model that isn't there is named by its URL", async () => {
    const page = await fresh("/isolated/");
    const opened = page.evaluate(async () => {
      const { deltafold } = globalThis as unknown as { deltafold: typeof import("../web.ts") };
      await deltafold.openEngine("/absent");
    });
    await expect(opened).rejects.toThrow(`${server.url}/absent: has no config.json`);
  });
}

/** In the page: cuts the last byte off the largest file of the cache, and returns what it was. */
async function truncateLargest(): Promise<number> {
  let largest: { handle: FileSystemFileHandle; size: number } | null = null;
  const folders = [await navigator.storage.getDirectory()];
  for (const folder of folders) {
    for await (const handle of folder.values()) {
      if (handle.kind === "directory") folders.push(handle as FileSystemDirectoryHandle);
      else {
        const { size } = await (handle as FileSystemFileHandle).getFile();
        if (size > (largest?.size ?? 0)) largest = { handle: handle as FileSystemFileHandle, size };
      }
    }
  }
  const file = await largest!.handle.createWritable({ keepExistingData: true });
  await file.truncate(largest!.size - 1);
  await file.close();
  return largest!.size;
}
