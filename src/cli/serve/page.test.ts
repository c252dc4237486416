/** The chat page and the dashboard, in a browser, over a real socket. */
import { readFile } from "node:fs/promises";
import type { Browser, BrowserContextOptions } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findChromium, launch } from "../../web/chromium.cases.ts";
import { PageServer, WatchedPage } from "./page.cases.ts";

const executable = findChromium();
if (executable === null) test.skip("page: there is no chromium", () => {});
else pageTests(executable);

/** A reply that thinks first, as nano does. */
const thought = (reasoning: string, text: string): string => `${reasoning}\n</think>\n\n${text}`;

const phone: BrowserContextOptions = { viewport: { width: 360, height: 740 }, hasTouch: true };

function pageTests(executable: string): void {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launch(executable);
  });
  afterAll(async () => {
    await browser?.close();
  });

  const open = (server: PageServer, path?: string, options?: BrowserContextOptions) =>
    WatchedPage.open(browser, server, path, options);

  test("by keys alone: a message goes out, and its reply is there before it ends", async () => {
    await using server = await PageServer.start();
    await using chat = await open(server);
    server.script.say(thought("Hm.", "One two three.\n\nFour five six."), 12);
    await chat.page.waitForFunction(() => document.activeElement?.id === "message");
    await chat.page.keyboard.type("Count");
    await chat.page.keyboard.press("Shift+Enter");
    await chat.page.keyboard.type("please");
    await chat.page.keyboard.press("Enter");
    await chat.text("One two").waitFor();
    expect(await chat.button("Stop").isVisible()).toBe(true);
    expect(server.server.engine.counts.running).toBe(1);
    expect(await chat.reply.getAttribute("aria-busy")).toBe("true");
    server.script.goOn();
    await chat.ended();
    expect(await chat.shown()).toEqual(["Count\nplease", "One two three.\n\nFour five six."]);
    expect(await chat.field.evaluate((field) => field === document.activeElement)).toBe(true);
    expect(await chat.page.getByRole("log").locator("p").allTextContents()).toEqual([
      ...["The model is writing.", "One two three.", "Four five six.", "The reply has ended."],
    ]);
    const figures = await chat.reply.locator("details.figures summary").textContent();
    expect(figures).toMatch(/\d tok\/s/);
    expect(figures).toMatch(/\d tokens a round/);
    expect(figures).toMatch(/0 of \d+ prompt tokens cached/);
    expect(figures).toMatch(/\d % of the context/);
  });

  test("code is code before its fence is closed, and nothing in it changes", async () => {
    await using server = await PageServer.start();
    const permissions = ["clipboard-read", "clipboard-write"];
    await using chat = await open(server, "/", { permissions });
    const code = "def __init__(self, *args):\n    x = a_b_c < b  # $x$ <div>";
    const tokensBefore = 30;
    server.script.say(
      thought("", `Use \`__init__\`:\n\n\`\`\`python\n${code}\n\`\`\`\n\nDone.`),
      tokensBefore,
    );
    await chat.field.fill("Code");
    await chat.field.press("Control+Enter");
    await chat.reply.locator("pre code").getByText("__init__").waitFor();
    expect(await chat.text("Done.").count()).toBe(0);
    server.script.goOn();
    await chat.ended();
    expect(await chat.reply.locator("pre code").textContent()).toBe(code);
    expect(await chat.reply.locator("p code").textContent()).toBe("__init__");
    await chat.button("Copy code").click();
    await chat.reply.getByText("Copied").waitFor();
    expect(await chat.page.evaluate(() => navigator.clipboard.readText())).toBe(code);
  });

  test.each(["Escape", "the button"])("%s stops a reply, and frees its slot", async (way) => {
    await using server = await PageServer.start();
    await using chat = await open(server);
    server.script.say(thought("", "one two three four five six seven"), 8);
    await chat.field.fill("Count");
    await chat.field.press("Enter");
    await chat.text("one two").waitFor();
    expect(server.server.engine.counts.running).toBe(1);
    if (way === "Escape") await chat.page.keyboard.press("Escape");
    else await chat.button("Stop").click();
    await chat.ended();
    await chat.reply.getByText("Stopped.").waitFor();
    server.script.goOn();
    await server.idle();
    expect((await chat.shown()).at(-1)).toMatch(/^one two/);
    server.script.say(thought("", "eight"));
    await chat.button("Continue").click();
    await chat.ended();
    expect((await chat.shown()).at(-1)).toBe("eight");
    expect(chat.asked.at(-1)!["messages"]).toHaveLength(3);
  });

  test("leaving the page stops a reply, and keeps what came of it", async () => {
    await using server = await PageServer.start();
    await using chat = await open(server);
    server.script.say(thought("", "one two three four five six seven"), 8);
    await chat.field.fill("Count");
    await chat.field.press("Enter");
    await chat.text("one two").waitFor();
    await chat.page.reload();
    await chat.text("one two").waitFor();
    await chat.reply.getByText("Stopped.").waitFor();
    server.script.goOn();
    await server.idle();
  });

  test("edits and repetitions are branches, which a reload keeps", async () => {
    await using server = await PageServer.start();
    await using chat = await open(server);
    server.script.say(thought("", "first"));
    await chat.say("one");
    server.script.say(thought("", "second"));
    await chat.button("Regenerate").click();
    await chat.text("second").waitFor();
    await chat.ended();
    expect(chat.asked[1]!["messages"]).toEqual(chat.asked[0]!["messages"]);
    expect(chat.asked[1]!["seed"]).not.toBe(chat.asked[0]!["seed"]);
    server.script.say(thought("", "third"));
    await chat.button("Edit").click();
    const editor = chat.page.getByRole("textbox", { name: "Edit your message" });
    await editor.fill("uno");
    await editor.press("Enter");
    await chat.text("third").waitFor();
    await chat.ended();
    expect(await chat.shown()).toEqual(["uno", "third"]);
    await chat.page.reload();
    await chat.text("third").waitFor();
    expect(await chat.shown()).toEqual(["uno", "third"]);
    await chat.button("Previous version").click();
    await chat.text("second").waitFor();
    expect(await chat.shown()).toEqual(["one", "second"]);
    // Now those of the reply.
    await chat.button("Previous version").click();
    await chat.text("first").waitFor();
    await chat.page.reload();
    await chat.text("first").waitFor();
    expect(await chat.shown()).toEqual(["one", "first"]);
  });

  test("Escape leaves a message as it was, and the focus goes back", async () => {
    await using server = await PageServer.start();
    await using chat = await open(server);
    server.script.say(thought("", "first"));
    await chat.say("one");
    await chat.button("Edit").click();
    await chat.focused("Edit your message");
    await chat.page.keyboard.type(" two");
    await chat.page.keyboard.press("Escape");
    await chat.page.waitForFunction(() => document.activeElement?.textContent === "Edit");
    expect(await chat.shown()).toEqual(["one", "first"]);
  });

  test("conversations are named, exported, imported and deleted", async () => {
    await using server = await PageServer.start();
    await using chat = await open(server);
    for (const text of ["alpha", "beta"]) {
      await chat.button("New chat").click();
      server.script.say(thought("", `${text} reply`));
      await chat.say(text);
    }
    const list = chat.page.getByRole("navigation", { name: "Conversations" }).getByRole("listitem");
    await chat.button("Rename alpha").click();
    await chat.focused("Name of the conversation");
    await chat.page.keyboard.press("Control+A");
    await chat.page.keyboard.type("renamed");
    await chat.page.keyboard.press("Enter");
    await chat.button("renamed").click();
    await chat.text("alpha reply").waitFor();
    const [download] = await Promise.all([
      chat.page.waitForEvent("download"),
      chat.button("Export").click(),
    ]);
    const file = await readFile(await download.path(), "utf8");
    expect(JSON.parse(file)).toMatchObject({ format: "deltafold-conversations", version: 1 });
    chat.page.on("dialog", (dialog) => void dialog.accept());
    await chat.button("Delete renamed").click();
    await list.getByText("renamed").waitFor({ state: "detached" });
    await chat.page.reload();
    await list.getByText("beta").waitFor();
    expect(await list.count()).toBe(1);

    await using other = await open(server);
    const input = other.page.getByLabel("Import");
    const choose = (text: string) =>
      input.setInputFiles({
        name: "a.json",
        mimeType: "application/json",
        buffer: Buffer.from(text),
      });
    await choose('{"format": "other"}');
    await other.page.getByText("doesn't hold conversations").waitFor();
    await choose(file);
    await other.page.getByText("2 conversations imported.").waitFor();
    await other.button("renamed").click();
    await other.text("alpha reply").waitFor();
    await choose(file);
    await other.page.getByText("0 conversations imported.").waitFor();
  });

  test("settings reach the request, and wrong ones don't", async () => {
    await using server = await PageServer.start();
    await using chat = await open(server);
    await chat.button("Settings").click();
    const dialog = chat.page.getByRole("dialog", { name: "Settings" });
    await chat.expectNames();
    const set = async (label: string, value: string) =>
      await dialog.getByLabel(label, { exact: true }).fill(value);
    await set("System prompt", "Be short.");
    await set("Temperature", "0.3");
    await set("Top p", "0.9");
    await set("Top k", "40");
    await set("Min p", "0.05");
    await set("Longest reply", "50");
    await set("Seed", "12");
    await dialog.getByLabel("Thinking").selectOption("Off");
    await dialog.getByLabel(/^Drafts/).uncheck();
    await set("Top p", "7");
    await dialog.getByText("Top p must be a number from 0.001 to 1.").waitFor();
    expect(await dialog.getByLabel("Top p").getAttribute("aria-invalid")).toBe("true");
    await chat.page.keyboard.press("Escape");
    await dialog.waitFor({ state: "hidden" });
    server.script.say("Yes.");
    await chat.say("Hello");
    expect(chat.asked).toEqual([
      {
        messages: [
          { role: "system", content: "Be short." },
          { role: "user", content: "Hello" },
        ],
        temperature: 0.3,
        top_p: 0.9,
        top_k: 40,
        min_p: 0.05,
        max_tokens: 50,
        seed: 12,
        chat_template_kwargs: { enable_thinking: false },
        draft: false,
        stream: true,
        stream_options: { include_usage: true },
      },
    ]);
    await chat.page.reload();
    await chat.button("Settings").click();
    expect(await dialog.getByLabel("Temperature").inputValue()).toBe("0.3");
  });

  test("thoughts are folded, and calls are shown and answered", async () => {
    await using server = await PageServer.start();
    await using chat = await open(server);
    await chat.button("Settings").click();
    const tool = { type: "function", function: { name: "get_weather" } };
    await chat.page.getByLabel("Tools").fill(JSON.stringify([tool]));
    await chat.button("Close").click();
    const call =
      "<tool_call>\n<function=get_weather>\n<parameter=city>\nPrague\n</parameter>\n</function>\n</tool_call>";
    server.script.say(thought("I need the *weather*.", call));
    await chat.say("Weather?");
    const thoughts = chat.reply.getByText("I need the *weather*.");
    expect(await thoughts.isVisible()).toBe(false);
    await chat.reply.getByText("Thoughts").click();
    expect(await thoughts.isVisible()).toBe(true);
    const shown = chat.reply.getByRole("region", { name: "Call of get_weather" });
    expect(JSON.parse((await shown.locator("pre").textContent())!)).toEqual({ city: "Prague" });
    server.script.say(thought("", "It rains."));
    await chat.page.getByLabel("Result of get_weather").fill("rain");
    await chat.button("Send result").click();
    await chat.text("It rains.").waitFor();
    await chat.ended();
    expect(chat.asked[1]).toMatchObject({
      tools: [tool],
      messages: [
        { role: "user" },
        {
          role: "assistant",
          reasoning_content: "I need the *weather*.",
          tool_calls: [{ function: { name: "get_weather" } }],
        },
        { role: "tool", content: "rain" },
      ],
    });
  });

  test("a reply can't do anything but be read", async () => {
    await using server = await PageServer.start();
    await using chat = await open(server);
    const lines = [
      "<script>document.title = 'owned'</script>",
      "<img src=x onerror=\"document.title = 'owned'\">",
      "[click](javascript:document.title='owned')",
      "![pixel](http://example.org/pixel.png)",
      "<style>* { display: none }</style>",
      "[away](https://example.org/)",
    ];
    server.script.say(thought("<b>bold</b>", lines.join("\n\n")));
    await chat.say("Attack");
    const shown = await chat.reply.locator(".markdown").textContent();
    for (const line of [0, 1, 2, 4]) expect(shown).toContain(lines[line]);
    expect(await chat.reply.locator("script, img, style, iframe").count()).toBe(0);
    const links = chat.reply.getByRole("link");
    expect(
      await links.evaluateAll((all) => all.map((each) => (each as HTMLAnchorElement).href)),
    ).toEqual(["http://example.org/pixel.png", "https://example.org/"]);
    for (const link of await links.all()) {
      expect(await link.getAttribute("rel")).toBe("noopener noreferrer");
    }
    expect(await chat.page.title()).toBe("Attack – deltafold");
  });

  test("errors are shown where the reply would be, and it can be tried again", async () => {
    await using server = await PageServer.start();
    await using chat = await open(server);
    server.script.say(thought("", "word ".repeat(40)));
    await chat.button("Settings").click();
    await chat.page.getByLabel("Longest reply").fill("5000");
    await chat.button("Close").click();
    await chat.say("Hello");
    await chat.reply.locator(".error").getByText("maximum context length").waitFor();
    await chat.button("Settings").click();
    await chat.page.getByLabel("Longest reply").fill("");
    await chat.button("Close").click();
    await chat.button("Try again").click();
    await chat.text("word word").waitFor();
    await chat.ended();
  });

  test("a key is asked for where the server wants one, and stays in the browser", async () => {
    await using server = await PageServer.start();
    server.instead = ({ url, headers }) => {
      if (!url.includes("/v1/") || headers.get("Authorization") === "Bearer right") return null;
      return Response.json({ error: { message: "A key is needed." } }, { status: 401 });
    };
    await using chat = await open(server);
    const key = chat.page.getByRole("main").getByLabel("API key");
    await key.fill("right");
    await key.press("Enter");
    await key.waitFor({ state: "detached" });
    await chat.page.getByRole("heading", { name: "nano" }).waitFor();
    server.script.say(thought("", "in"));
    await chat.say("Hello");
    expect((await chat.shown()).at(-1)).toBe("in");
    await chat.page.reload();
    await chat.page.getByRole("heading", { name: "nano" }).waitFor();
    const kept = await chat.page.evaluate(() => JSON.stringify(localStorage));
    expect(kept).toContain("right");
    expect(JSON.stringify(chat.asked)).not.toContain("right");
  });

  test("the page is there before the server has answered anything", async () => {
    await using server = await PageServer.start();
    const { promise, resolve } = Promise.withResolvers<null>();
    server.instead = ({ url }) => (url.includes("/v1/") ? promise : null);
    await using chat = await open(server);
    await chat.field.waitFor();
    await chat.expectNames();
    resolve(null);
    await chat.page.getByRole("heading", { name: "nano" }).waitFor();
  });

  test("nothing is too wide for a phone, and every control has a name", async () => {
    await using server = await PageServer.start();
    await using chat = await open(server, "/", phone);
    const wide = `${"word".repeat(100)}\n\n\`\`\`\n${"code ".repeat(50)}\n\`\`\`\n\n${"| a wide cell ".repeat(12)}|\n${"|---".repeat(12)}|\n`;
    server.script.say(thought("x".repeat(200), wide));
    await chat.say("u".repeat(300));
    await chat.reply.locator("details.figures summary").click();
    await chat.reply.getByText("Thoughts").click();
    expect(await chat.isTooWide()).toBe(false);
    await chat.expectNames();
    await chat.button("Chats").click();
    expect(await chat.isTooWide()).toBe(false);
    await chat.expectNames();
    expect(await chat.page.evaluate(() => document.activeElement?.textContent)).toBe("New chat");
    await chat.page.keyboard.press("Escape");
    await chat.page.waitForFunction(() => document.activeElement?.textContent === "Chats");
    await chat.button("Settings").click();
    expect(await chat.isTooWide()).toBe(false);
    await chat.page.goto(`${server.url}/dashboard`);
    await chat.page.getByText("ok · fake").waitFor();
    expect(await chat.isTooWide()).toBe(false);
    await chat.expectNames();
  });

  test("colours are the system's until one chooses, and the choice is kept", async () => {
    await using server = await PageServer.start();
    await using chat = await open(server);
    const background = () =>
      chat.page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    const light = await background();
    await chat.page.emulateMedia({ colorScheme: "dark" });
    const dark = await background();
    expect(dark).not.toBe(light);
    await chat.page.getByLabel("Colours").selectOption("Light");
    expect(await background()).toBe(light);
    await chat.page.reload();
    await chat.field.waitFor();
    expect(await background()).toBe(light);
  });

  test("the dashboard shows figures as they change", async () => {
    await using server = await PageServer.start();
    await using chat = await open(server);
    await using board = await open(server, "/dashboard");
    const tile = (name: string) =>
      board.page.locator(".tile", { hasText: name }).locator("dd").first();
    await tile("Slots in use").getByText("0 of 2").waitFor();
    await board.page.getByText("ok · fake").waitFor();
    server.script.say(thought("", "one two three four five six"), 6);
    await chat.field.fill("Count");
    await chat.field.press("Enter");
    await tile("Slots in use").getByText("1 of 2").waitFor();
    server.script.goOn();
    await chat.ended();
    await tile("Slots in use").getByText("0 of 2").waitFor();
    const chart = (name: string) => board.page.getByRole("img", { name: new RegExp(`^${name}: `) });
    for (const name of ["Tokens a second", "Requests", "Tokens a round", "Memory"]) {
      expect(await chart(name).count()).toBe(1);
    }
    expect(await chart("Requests").locator(".line-0").getAttribute("d")).toContain("L");
    await board.expectNames();
  });

  test("what a server doesn't tell is a dash", async () => {
    await using server = await PageServer.start();
    server.instead = ({ url }) =>
      url.endsWith("/metrics") ? new Response("", { status: 404 }) : null;
    await using board = await open(server, "/dashboard");
    await board.page.getByText("ok · fake").waitFor();
    const values = await board.page.locator(".tile").allInnerTexts();
    expect(values.map((text) => text.split("\n").slice(0, 2).join(" "))).toEqual([
      "Replies –",
      "Prompts –",
      "Slots in use 0 of 2",
      "Waiting 0",
      "Drafts kept –",
      "Tokens a round –",
      "Keys and values –",
      expect.stringMatching(/^Prompt cache \d/),
    ]);
  });
}
