import { beforeEach, expect, test, vi } from "vitest";
import { nextTask } from "../../clock.ts";
import type { Plan } from "../../model/plan.ts";
import { embeddedModel, type OpenOptions } from "../../node.ts";
import { runLine, testIo } from "../io.cases.ts";
import { runProgram } from "../program.ts";
import { faulty, type Opener } from "./faulty.cases.ts";
import { runCells } from "./gate-run.cases.ts";
import { type GateReport, GateRun } from "./gate-run.ts";
import { httpOn } from "./http.ts";
import { type HttpCommands, ownCommands } from "./http-commands.ts";
import { choice, failedOf, fake } from "./resume.cases.ts";

/** What is wrong with the server. */
const planted = vi.hoisted(() => ({
  seedIgnored: false,
  draftIgnored: false,
  alwaysDrafted: false,
  eventLost: false,
  tokenUncounted: false,
}));

beforeEach(() => {
  for (const fault of Object.keys(planted) as (keyof typeof planted)[]) planted[fault] = false;
});

vi.mock(import("../../serve/reply-fields.ts"), async (original) => {
  const fields = await original();
  const toReplyRequest: typeof fields.toReplyRequest = (asked) => {
    const { seed, ...request } = fields.toReplyRequest(asked);
    return {
      ...request,
      ...(!planted.seedIgnored && { seed }),
      ...(planted.draftIgnored && { draft: false }),
      ...(planted.alwaysDrafted && { draft: true }),
    };
  };
  return { ...fields, toReplyRequest };
});

/** Loses the third part of every streamed reply. */
const LossySender = vi.hoisted(
  () =>
    class {
      #parts = 0;

      after(part: string): string {
        return planted.eventLost && ++this.#parts === 3 ? "" : part;
      }
    },
);

vi.mock(import("../../serve/chat-format.ts"), async (original) => {
  const { ChatFormat } = await original();
  class LossyFormat extends ChatFormat {
    readonly #sent = new LossySender();

    override part(...asked: Parameters<InstanceType<typeof ChatFormat>["part"]>): string {
      return this.#sent.after(super.part(...asked));
    }
  }
  return { ChatFormat: LossyFormat };
});

vi.mock(import("../../serve/responses-format.ts"), async (original) => {
  const { ResponseFormat } = await original();
  class LossyFormat extends ResponseFormat {
    readonly #sent = new LossySender();

    override part(...asked: Parameters<InstanceType<typeof ResponseFormat>["part"]>): string {
      return this.#sent.after(super.part(...asked));
    }
  }
  return { ResponseFormat: LossyFormat };
});

vi.mock(import("../../serve/messages-format.ts"), async (original) => {
  const { MessagesFormat } = await original();
  class LossyFormat extends MessagesFormat {
    readonly #sent = new LossySender();

    override part(...asked: Parameters<InstanceType<typeof MessagesFormat>["part"]>): string {
      return this.#sent.after(super.part(...asked));
    }
  }
  return { MessagesFormat: LossyFormat };
});

vi.mock(import("../../serve/reply-extras.ts"), async (original) => {
  const extras = await original();
  const usageOf: typeof extras.usageOf = ([first, ...others]) => {
    const ids = planted.tokenUncounted ? first!.ids.slice(1) : first!.ids;
    return extras.usageOf([{ ...first!, ids }, ...others]);
  };
  return { ...extras, usageOf };
});

/** Rounds of a fake take as long as their rows; here drafts always pay. */
vi.mock(import("../../draft/cost-store.ts"), async (original) => {
  const verify = [
    [1, 1e6],
    [16, 1e6 + 1],
  ] as const;
  const storedCosts = async () => ({ verify, draftMs: 1, keepMs: 0, shared: null });
  return { ...(await original()), storedCosts };
});

/** Lets sockets in between rounds. */
const yielding: Opener = faulty(fake, (backend) => ({
  read: async (handle) => {
    await nextTask();
    return await backend.read(handle);
  },
}));

/** What the commands of this process compute with. */
let open: Opener = yielding;

vi.mock(import("../load.ts"), async () => {
  const { openResumeEngine } = await import("./resume-engine.ts");
  const loadEngine = async (_: unknown, model: string, options: OpenOptions) => {
    const memory = { cacheBytes: options.promptCacheBytes ?? 2 ** 27, spill: null };
    return (await openResumeEngine({ model, open, choice: options }, memory)).engine;
  };
  return { loadEngine };
});

/** What was printed, which no fault changes. */
const honest = new Map<string, string>();

/** Commands of this process. */
function ownProcess(server: Opener): HttpCommands {
  return {
    run: async (args) => {
      open = yielding;
      const line = ["run", ...args];
      const printed = honest.get(line.join(" ")) ?? (await runLine(line)).stdout;
      honest.set(line.join(" "), printed);
      return printed;
    },
    serve: async (args) => {
      open = server;
      const io = testIo();
      const code = runProgram(["serve", ...args, "--port", "0", "--quiet"], io);
      await io.stdout.until("\n");
      const stop = async () => {
        io.signals.emit("SIGTERM");
        await code;
      };
      return { url: io.stdout.text.trim(), [Symbol.asyncDispose]: stop };
    },
  };
}

const tokensMax = 12;
const options = { model: embeddedModel, choice: { backend: "wasm" }, full: false } as const;

async function runHttp(server: Opener = yielding): Promise<GateReport> {
  const run = new GateRun({ nowMs: () => 0, unixSeconds: () => 0 }, false, () => {});
  return run.report("http", await httpOn(run, options, ownProcess(server), tokensMax));
}

/** All that is greedy, in every form. */
async function runGreedy(): Promise<GateReport> {
  return await runCells("http", 16 * 5 + 8, (run) =>
    httpOn(run, { ...options, full: true }, ownProcess(yielding), tokensMax),
  );
}

test("passes on wasm, with commands in processes of their own", { timeout: 200_000 }, async () => {
  const report = await runCells("http", 8, (run) =>
    httpOn(run, { ...options, choice }, ownCommands),
  );
  expect(failedOf(report)).toEqual([]);
  expect(report.passed).toBe(8);
  expect(report.backend).toMatch(/^wasm: /);
});

test("nothing is planted", async () => {
  const report = await runHttp();
  expect(failedOf(report)).toEqual([]);
  expect(report.cases.length).toBe(2 * (4 * 8 + 1) + 1);
  expect(report.backend).toBe("fake: none; hashes");
});

test("a seed that the server ignores", async () => {
  planted.seedIgnored = true;
  const wrong = failedOf(await runHttp());
  for (const line of wrong) expect(line).toMatch(/t0\.8 .*(tokens|tokenSha): /);
  expect(wrong.length).toBeGreaterThan(30);
});

test("drafts that never come", async () => {
  planted.draftIgnored = true;
  const report = await runHttp();
  expect(failedOf(report)).toEqual([
    expect.stringMatching(/^coverage: no drafts: copy chat; .*no drafts: code raw$/),
  ]);
});

test("drafts of replies that should be plain", async () => {
  planted.alwaysDrafted = true;
  const wrong = failedOf(await runHttp());
  for (const line of wrong) expect(line).toMatch(/: plain, .*(drafts|rounds) for/);
  expect(wrong.length).toBeGreaterThan(0);
});

test("in every form", async () => {
  const report = await runGreedy();
  expect(failedOf(report)).toEqual([]);
  expect(report.not_run).toEqual([
    expect.stringMatching(/^352 of 440 cells, from copy chat, t0\.8/),
  ]);
});

test("an event that is lost", async () => {
  planted.eventLost = true;
  const wrong = failedOf(await runGreedy());
  for (const form of ["chat", "response", "message"]) {
    const name = new RegExp(`^copy ${form}, greedy: (drafted|plain), streamed: `);
    expect(wrong.filter((line) => name.test(line))).toHaveLength(2);
  }
  for (const line of wrong)
    expect(line).toMatch(/^(\w+ [crm]\w+, greedy: \w+, streamed|8 at once)/);
});

test("a token that isn't counted", async () => {
  planted.tokenUncounted = true;
  const report = await runHttp();
  expect(report.passed).toBeLessThanOrEqual(1);
  expect(failedOf(report)[0]).toMatch(/tokens: \d+, not \d+$/);
});

test("streams that see each other", async () => {
  const swapped = ({ segments, ids }: Plan) => {
    if (segments.length < 2) return ids;
    const [first = 0, ...others] = ids;
    return [(first + 1) % 256, ...others];
  };
  const server = faulty(yielding, (backend) => ({
    verify: (plan) => backend.verify({ ...plan, ids: swapped(plan) }),
  }));
  const wrong = failedOf(await runHttp(server));
  expect(wrong.map((line) => line.split(",")[0])).toEqual(Array(2).fill("8 at once"));
});
