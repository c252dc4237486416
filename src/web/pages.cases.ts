import { readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "vite";
import { fileIn, TestServer } from "./server.cases.ts";

const root = new URL("../../", import.meta.url);

/** What every page's script does. */
const script = `
  import * as web from "deltafold/web";
  globalThis.deltafold = web;
  globalThis.startWorker = () => new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
`;
/** A worker of the page's own that does what `complete` does. */
const workerScript = `
  import { openEngine } from "deltafold/web";
  addEventListener("message", async ({ data: [options, request] }) => {
    const engine = await openEngine("/models/nano", options);
    const { ids } = await engine.complete(request).result;
    postMessage({ ids, device: engine.info.backend.device });
  });
`;

const html = (head: string, src: string): string =>
  `<!doctype html><link rel="icon" href="data:,">${head}<script type="module" src="${src}"></script>`;

/** A page with the package, and the example of docs/web.md, as a bundler makes them, in a folder that is deleted with it. */
export class Bundle implements AsyncDisposable {
  readonly folder: URL;
  readonly #path: string;

  private constructor(path: string) {
    this.#path = path;
    this.folder = new URL(`file://${path}/out/`);
  }

  static async make(): Promise<Bundle> {
    const path = await mkdtemp(join(tmpdir(), "deltafold-web-"));
    await mkdir(join(path, "in"));
    await writeFile(join(path, "in/index.html"), html("", "./main.js"));
    await writeFile(join(path, "in/main.js"), script);
    await writeFile(join(path, "in/worker.js"), workerScript);
    const example = /```html\n(.*?)```/s.exec(readFileSync(new URL("docs/web.md", root), "utf8"));
    await writeFile(join(path, "in/example.html"), example?.[1] ?? "");
    await build({
      root: join(path, "in"),
      configFile: false,
      base: "./",
      logLevel: "error",
      resolve: { alias: { "deltafold/web": fileURLToPath(new URL("dist/web.js", root)) } },
      build: {
        outDir: join(path, "out"),
        rolldownOptions: {
          input: ["index.html", "example.html"].map((file) => join(path, "in", file)),
        },
      },
    });
    return new Bundle(path);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#path, { recursive: true });
  }
}

const isolation = {
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-embedder-policy": "require-corp",
};

/** The package's dependencies as a page without a bundler finds them. */
const imports = Object.fromEntries(
  ["@huggingface/jinja", "@noble/hashes/sha2.js", "@noble/hashes/utils.js", "zod"].map((name) => [
    name,
    `/modules/${import.meta.resolve(name).split("/node_modules/").at(-1)}`,
  ]),
);

/**
 * Serves `/isolated/` and `/plain/` (the bundled page, with and without the headers that let it share
 * memory), `/unbundled/` (dist/ as it is, isolated), and `/models/`.
 */
export function servePages(bundle: Bundle): Promise<TestServer> {
  const folders: Record<string, URL> = {
    isolated: bundle.folder,
    plain: bundle.folder,
    dist: new URL("dist/", root),
    modules: new URL("node_modules/", root),
    models: new URL("models/", root),
  };
  const page = html(
    `<script type="importmap">${JSON.stringify({ imports: { ...imports, "deltafold/web": "/dist/web.js" } })}</script>`,
    "./main.js",
  );
  const made = new Map([
    ["/unbundled/", page],
    ["/unbundled/main.js", script],
  ]);
  return TestServer.start(
    (path) => {
      const text = made.get(path);
      if (text !== undefined) return { bytes: new TextEncoder().encode(text) };
      const [, name = "", ...rest] = path.split("/");
      const folder = folders[name];
      return folder ? fileIn(folder, rest.join("/") || "index.html") : null;
    },
    (path) => (path.startsWith("/plain/") ? {} : isolation),
  );
}
