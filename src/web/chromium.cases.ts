import { existsSync } from "node:fs";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";

/** Chromium's path; null where this machine has none. */
export function findChromium(): string | null {
  const path = process.env["DELTAFOLD_CHROMIUM"] ?? "/usr/bin/chromium";
  return existsSync(path) ? path : null;
}

/** What lets headless Chromium on Linux have its software GPU. */
export const softwareGpu = "--enable-unsafe-webgpu";

export async function launch(executablePath: string, ...flags: string[]): Promise<Browser> {
  return await chromium.launch({ executablePath, args: ["--no-sandbox", ...flags] });
}

/** Opens a page and waits until its script has run; an error of it ends the wait. */
export async function openPage(context: Browser | BrowserContext, url: string): Promise<Page> {
  const page = await context.newPage();
  const failed = new Promise<never>((_, reject) => {
    page.on("pageerror", reject);
    // Among them modules that could not be loaded.
    page.on("console", (message) => {
      if (message.type() === "error") reject(new Error(message.text()));
    });
  });
  // What goes wrong later is the caller's to see.
  failed.catch(() => {});
  await Promise.race([page.goto(url), failed]);
  await Promise.race([ready(page), failed]);
  return page;
}

/** Waits until the page's script has run. */
export async function ready(page: Page): Promise<void> {
  await page.waitForFunction("globalThis.deltafold !== undefined");
}

export interface PageReply {
  readonly ids: readonly number[];
  readonly stateSha: string | null;
  readonly backend: string;
  readonly device: string;
}

type Web = typeof import("../web.ts");

/** Loads nano in the page and continues `prompt` greedily by up to `maxTokens`. */
export async function complete(
  page: Page,
  prompt: readonly number[],
  maxTokens: number,
  options: NonNullable<Parameters<Web["openEngine"]>[1]>,
): Promise<PageReply> {
  const task = { prompt, maxTokens, options };
  return await page.evaluate(async ({ prompt, maxTokens, options }) => {
    const { deltafold } = globalThis as unknown as { deltafold: Web };
    const engine = await deltafold.openEngine("/models/nano", options);
    try {
      const request = { prompt, maxTokens, temperature: 0, fingerprint: true };
      const { ids, stateSha } = await engine.complete(request).result;
      const { name, device } = engine.info.backend;
      return { ids, stateSha, backend: name, device };
    } finally {
      await engine[Symbol.asyncDispose]();
    }
  }, task);
}
