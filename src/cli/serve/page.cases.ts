/** What tests of the page need: a server whose replies are scripted and held, and a browser that is watched. */
import type { Browser, BrowserContextOptions, Locator, Page } from "playwright-core";
import { expect } from "vitest";
import { nextTask } from "../../clock.ts";
import { idle, Script, type TestServer, testServer } from "../../serve/engine.cases.ts";
import type { PageFiles } from "../../serve/page.ts";
import { readPageFiles } from "../../serve/page-files-node.ts";
import { Listener } from "./listener.ts";

/** A script that stops saying at a token, until it may go on. */
class HeldScript {
  readonly #script = new Script();
  readonly #waiting: (() => void)[] = [];
  #drawn = 0;
  #drawnMax = Number.POSITIVE_INFINITY;

  /** @param tokens after which the reply waits for `goOn` */
  say(text: string, tokens: number = Number.POSITIVE_INFINITY): void {
    this.#script.say(text);
    this.#drawn = 0;
    this.#drawnMax = tokens;
  }

  goOn(): void {
    this.#drawnMax = Number.POSITIVE_INFINITY;
    for (const wake of this.#waiting.splice(0)) wake();
  }

  readonly logits = (row: Float32Array): void => {
    this.#drawn++;
    this.#script.logits(row);
  };

  readonly computed = async (): Promise<void> => {
    await nextTask();
    if (this.#drawn < this.#drawnMax) return;
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
  };
}

/** Looks at a request before the server does; null leaves it to the server. */
type Instead = (request: Request) => Promise<Response | null> | Response | null;

/** A server with the pages, over a real socket. */
export class PageServer implements AsyncDisposable {
  readonly script: HeldScript = new HeldScript();
  readonly server: TestServer;
  instead: Instead = () => null;
  #listener!: Listener;

  private constructor(page: PageFiles) {
    const { logits, computed } = this.script;
    this.server = testServer({ logits, computed, contextTokens: 1024, app: { page } });
  }

  static async start(): Promise<PageServer> {
    const files = await readPageFiles();
    if (files === null) throw new Error("The pages are not built: run `npm run build`.");
    const started = new PageServer(files);
    started.#listener = await Listener.open("127.0.0.1", 0, async (request, connection) => {
      const answer = await started.instead(request);
      return answer ?? (await started.server.app.fetch(request, connection));
    });
    return started;
  }

  get url(): string {
    return this.#listener.url;
  }

  /** Waits until nobody has a slot. */
  async idle(): Promise<void> {
    await idle(this.server);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.script.goOn();
    await this.server.engine[Symbol.asyncDispose]();
    await this.#listener[Symbol.asyncDispose]();
    expect(this.server.reported).toEqual([]);
  }
}

/** A page of a browser without a history, and all that it did. */
export class WatchedPage implements AsyncDisposable {
  readonly page: Page;
  /** Bodies of the requests for replies, the oldest first. */
  readonly asked: Record<string, unknown>[] = [];
  readonly #elsewhere: string[] = [];
  /** What went wrong in it: scripts that threw, and what the policy forbade. */
  readonly #complaints: string[] = [];

  private constructor(page: Page, origin: string) {
    this.page = page;
    page.on("pageerror", (error) => this.#complaints.push(String(error)));
    page.on("console", (message) => {
      // A status that isn't 2xx is logged too, and shown by the page itself.
      const isTold = message.text().startsWith("Failed to load resource");
      if (message.type() === "error" && !isTold) this.#complaints.push(message.text());
    });
    page.on("request", (request) => {
      if (!/^(blob|data):/.test(request.url()) && new URL(request.url()).origin !== origin) {
        this.#elsewhere.push(request.url());
      }
      if (request.method() === "POST") this.asked.push(request.postDataJSON());
    });
  }

  static async open(
    browser: Browser,
    { url }: PageServer,
    path = "/",
    options: BrowserContextOptions = {},
  ): Promise<WatchedPage> {
    const context = await browser.newContext({ colorScheme: "light", ...options });
    const watched = new WatchedPage(await context.newPage(), url);
    await watched.page.goto(`${url}${path}`);
    return watched;
  }

  get field(): Locator {
    return this.page.getByRole("textbox", { name: "Message", exact: true });
  }

  /** The last reply that is shown. */
  get reply(): Locator {
    return this.page.getByRole("article", { name: "Reply" }).last();
  }

  /** Text of the last reply. */
  text(part: string): Locator {
    return this.reply.locator(".markdown").getByText(part).first();
  }

  /** Resolves once the text field of that name has the focus, so that keys go there. */
  async focused(name: string): Promise<void> {
    const field = this.page.getByRole("textbox", { name });
    await field.and(this.page.locator(":focus")).waitFor();
  }

  button(name: string | RegExp): Locator {
    return this.page.getByRole("button", { name, exact: typeof name === "string" }).last();
  }

  /** Says something, and waits for the end of the reply. */
  async say(text: string): Promise<void> {
    await this.field.fill(text);
    await this.field.press("Enter");
    await this.ended();
  }

  /** Waits until a reply can be asked for again. */
  async ended(): Promise<void> {
    await this.button("Send").waitFor();
    await this.reply.getByRole("button", { name: /Regenerate|Try again/ }).waitFor();
  }

  /** What is shown of the conversation, as the text of each message. */
  async shown(): Promise<string[]> {
    const texts = this.page.locator("article .bubble, article .markdown");
    return (await texts.allInnerTexts()).map((text) => text.trim());
  }

  /** Whether something has to be scrolled sideways to be seen. */
  async isTooWide(): Promise<boolean> {
    return await this.page.evaluate(() => {
      const { scrollWidth, clientWidth } = document.documentElement;
      const { right } = document.body.getBoundingClientRect();
      return scrollWidth > clientWidth || right > clientWidth;
    });
  }

  /** Fails where a control has no name that could be read out. */
  async expectNames(): Promise<void> {
    const tree = await this.page.locator("body").ariaSnapshot();
    // Lines such as `- button "Send" [disabled]`, in quotes where a name has a colon.
    const line = /^\s*- '?(button|link|textbox|combobox|checkbox|meter|img|dialog|region)\b.*$/gm;
    const found = [...tree.matchAll(line)].map(([whole]) => whole);
    expect(found.length).toBeGreaterThan(2);
    expect(found.filter((each) => !/ "[^"]/.test(each))).toEqual([]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.page.context().close();
    expect(this.#elsewhere).toEqual([]);
    expect(this.#complaints).toEqual([]);
  }
}
