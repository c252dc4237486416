import { once } from "node:events";
import { readdir, rm } from "node:fs/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { nextTask } from "../clock.ts";
import { Alarms } from "../serve/alarms.cases.ts";
import type { HubTime } from "./client.ts";
import type { PassingFault } from "./faults.ts";
import { faultsOf, HubBench, modelFiles, shards, someBytes, stillTime, text } from "./hub.cases.ts";
import type { Hub } from "./hub-node.ts";
import { parseHubName } from "./names.ts";
import { Pull } from "./pull-node.ts";
import type { HubFault } from "./test-hub.cases.ts";

let bench: HubBench;
beforeEach(async () => {
  bench = await HubBench.open();
});
afterEach(() => bench[Symbol.asyncDispose]());

const name = { repo: "org/model", revision: null };
const [shard = ""] = shards;

/** Pulls, and returns the faults that were overcome, with how long each was waited for. */
async function overcome(hub?: Hub): Promise<{ messages: string[]; waits: number[] }> {
  const waits: number[] = [];
  const time: HubTime = {
    ...stillTime,
    wait: async (ms) => {
      waits.push(ms);
    },
  };
  const messages: string[] = [];
  const onFault = (fault: PassingFault) => messages.push(fault.message);
  await using pull = await Pull.open(hub ?? bench.hub({}, time), name, bench.never);
  await pull.run({ onBytes() {}, onFault });
  return { messages, waits };
}

const passing: readonly (readonly [string, HubFault, RegExp])[] = [
  ["a connection that breaks", { cutAt: 70_000 }, /the connection broke/],
  ["a busy hub", { status: 503, atHub: true }, /the hub answered status 503/],
  ["a busy store", { status: 500 }, /the server that the hub named answered status 500/],
  ["a link that has expired", { status: 403 }, /answered status 403/],
  ["a longer length", { length: 200_001 }, /it should be 200000 bytes, and the answer has 200001/],
  ["a shorter length", { length: 199_999 }, /it should be 200000 bytes, and the answer has 199999/],
  [
    "other bytes",
    { garbage: true },
    /its bytes hash to [0-9a-f]{64}, and the hub says [0-9a-f]{64}/,
  ],
];

describe("what passes", () => {
  it.each(passing)("overcomes %s", async (_, fault, message) => {
    const files = modelFiles();
    bench.server.put(name.repo, files);
    bench.server.fault(shard, fault);
    const { messages, waits } = await overcome();
    expect(messages).toEqual([expect.stringMatching(message)]);
    expect(waits).toEqual([1000]);
    expect(await faultsOf(bench.hub(), name.repo, [files])).toEqual([]);
  });

  it("goes on from where a connection broke", async () => {
    const files = modelFiles();
    bench.server.put(name.repo, files);
    bench.server.fault(shard, { cutAt: 100_000 }, { cutAt: 60_000 });
    await overcome();
    const [first, ...later] = bench.server.requests
      .filter(({ at, path }) => at === "store" && path.endsWith(shard))
      .map(({ range }) => range);
    expect(first).toBeNull();
    // The last of what came before a break may be lost.
    const starts = later.map((range) => Number(/^bytes=(\d+)-$/.exec(range!)?.[1]));
    expect(starts).toEqual([
      expect.toSatisfy((at) => at > 0),
      expect.toSatisfy((at) => at > starts[0]!),
    ]);
    expect(await faultsOf(bench.hub(), name.repo, [files])).toEqual([]);
  });

  const resumed: readonly (readonly [string, HubFault, RegExp[]])[] = [
    ["knows no ranges", { whole: true }, []],
    ["compresses a part", { packed: true }, [/of 200000 were asked for, and packed ones came/]],
    [
      "sends another part",
      { range: "bytes 7-199999/200000" },
      [/bytes from \d+ of 200000 were asked for, and bytes 7-199999\/200000 came/],
    ],
    [
      "doesn't say which part it sends",
      { range: "" },
      [/bytes from \d+ of 200000 were asked for, and {2}came/],
    ],
  ];
  it.each(resumed)(
    "overcomes a server that %s when it is asked to go on",
    async (_, fault, more) => {
      const files = modelFiles();
      bench.server.put(name.repo, files);
      bench.server.fault(shard, { cutAt: 100_000 }, fault);
      expect((await overcome()).messages.slice(1)).toEqual(
        more.map((message) => expect.stringMatching(message)),
      );
      expect(await faultsOf(bench.hub(), name.repo, [files])).toEqual([]);
    },
  );

  it("begins anew where a server can't go on, again and again", async () => {
    const files = modelFiles();
    bench.server.put(name.repo, files);
    const stuck = [{ range: "" }, { packed: true }, { status: 416 }] as const;
    for (const misfit of stuck) {
      bench.server.fault(shard, { cutAt: 100_000 }, misfit, misfit);
      expect((await overcome()).messages.length).toBe(3);
      expect(bench.server.requests.at(-1)?.range).toBeNull();
      expect(await faultsOf(bench.hub(), name.repo, [files])).toEqual([]);
      await rm(bench.hub().cacheOf(name.repo).folder, { recursive: true });
    }
  });

  it("unpacks what is compressed although nobody asked", async () => {
    const files = modelFiles();
    bench.server.put(name.repo, files);
    bench.server.fault("/config.json", { packed: true });
    expect((await overcome()).messages).toEqual([]);
    expect(await faultsOf(bench.hub(), name.repo, [files])).toEqual([]);
  });

  it("begins anew what stalls, and not what is slow", async () => {
    const alarms = new Alarms();
    const files = new Map([
      ["config.json", text({})],
      ["tokenizer.json", text({})],
      ["model.safetensors", someBytes(300_000, 1)],
    ]);
    bench.server.put(name.repo, files);
    bench.server.fault("model.safetensors", { stallAt: 200_000 });
    const stalled = once(bench.server, "stalled");
    let hasFailed = false;
    const wait = async () => {
      hasFailed = true;
    };
    const pulled = overcome(bench.hub({}, { setAlarm: alarms.set, wait }));
    await stalled;
    while (!hasFailed) {
      alarms.pass(20_000);
      await nextTask();
    }
    expect((await pulled).messages).toEqual([expect.stringMatching(/only \d+ bytes came in 20 s/)]);
    expect(await faultsOf(bench.hub(), name.repo, [files])).toEqual([]);
  });

  it("waits as long as the hub asks, and longer each time where it doesn't say", async () => {
    bench.server.put(name.repo, modelFiles());
    const busy = { status: 429, atHub: true } as const;
    bench.server.fault(shard, busy, { ...busy, headers: { "retry-after": "7" } }, busy);
    expect((await overcome()).waits).toEqual([1000, 7000, 4000]);
  });

  it("asks again for the list, too", async () => {
    bench.server.put(name.repo, modelFiles());
    bench.server.fault("/revision/main", { status: 502 }, { cutAt: 100 });
    expect((await overcome()).waits).toEqual([1000, 2000]);
  });
});

const lasting: readonly (readonly [string, string, HubFault, RegExp])[] = [
  [
    "a hub that is gone",
    shard,
    { status: 503 },
    /org\/model\/model-00001.*status 503, 5 times in a row\.$/,
  ],
  ["bytes that stay wrong", shard, { garbage: true }, /model-00001.*: its bytes hash to/],
  [
    "a hub that wants rest for long",
    shard,
    { status: 429, atHub: true, headers: { "retry-after": "3600" } },
    /the hub answered status 429\. It asks for 3600 s of rest\./,
  ],
  ["a stranger", shard, { status: 418, atHub: true }, /refuses org\/model with status 418\./],
  [
    "an expired token",
    "/revision/main",
    { status: 401 },
    /^127\.0\.0\.1:\d+ has no model org\/model\. If it is private, set HF_TOKEN, or log in/,
  ],
  [
    "a gated model",
    "/config.json",
    { status: 403, headers: { "x-error-code": "GatedRepo" } },
    /org\/model is gated: accept its terms at http:\/\/127.*\/org\/model, then set HF_TOKEN/,
  ],
  [
    "a file that has vanished",
    "/config.json",
    { status: 404, headers: { "x-error-code": "EntryNotFound" } },
    /org\/model@[0-9a-f]{40} lacks a file that the hub has listed\./,
  ],
  [
    "endless redirects",
    "/config.json",
    { status: 302, headers: { location: "config.json" } },
    /config\.json: the hub redirects more than 5 times\./,
  ],
  [
    "a redirect to a file",
    "/config.json",
    { status: 302, headers: { location: "file:///etc/passwd" } },
    /redirects to .*, which is not followed\./,
  ],
  [
    "no JSON",
    "/revision/main",
    { text: "<html>" },
    /doesn't list org\/model's files as it should: the answer/,
  ],
  [
    "a commit that is a path",
    "/revision/main",
    { text: JSON.stringify({ sha: "../../../etc", siblings: [] }) },
    /as it should: sha: /,
  ],
  [
    "a digest that is a path",
    "/revision/main",
    {
      text: JSON.stringify({
        sha: "0".repeat(40),
        siblings: [{ rfilename: "config.json", size: 1, blobId: "../config" }],
      }),
    },
    /as it should: siblings\.0\.blobId: /,
  ],
  [
    "a text of a terabyte",
    "/revision/main",
    {
      text: JSON.stringify({
        sha: "0".repeat(40),
        siblings: [{ rfilename: "config.json", size: 1e12, blobId: "0".repeat(40) }],
      }),
    },
    /org\/model\/config\.json is 1000000000000 bytes; a text file of at most 67108864 is read\./,
  ],
];

describe("what doesn't pass", () => {
  it.each(lasting)("gives up at %s", async (_, path, fault, why) => {
    bench.server.put(name.repo, modelFiles());
    bench.server.fault(path, ...Array.from({ length: 10 }, () => fault));
    await expect(bench.pull(name)).rejects.toThrow(why);
    expect(await faultsOf(bench.hub(), name.repo, [modelFiles()])).toEqual([]);
  });

  it("says of models and revisions that there are none", async () => {
    bench.server.put(name.repo, modelFiles());
    const unknown = { repo: "org/other", revision: null };
    await expect(bench.pull(unknown)).rejects.toThrow(
      /has no model org\/other\. If it is private, set/,
    );
    const hub = bench.hub({ token: "hf_secret" });
    const refused = bench.pull(unknown, hub);
    await expect(refused).rejects.toThrow(/your token has no access to it/);
    await expect(refused).rejects.not.toThrow(/hf_secret/);
    const revision = { ...name, revision: "v9" };
    await expect(bench.pull(revision)).rejects.toThrow("org/model has no revision v9.");
  });

  it("takes no commit for another", async () => {
    const commit = bench.server.put(name.repo, modelFiles());
    bench.server.put(name.repo, modelFiles(), "f".repeat(40));
    await expect(bench.pull({ ...name, revision: "f".repeat(40) })).rejects.toThrow(
      `The hub lists ${commit} where ${"f".repeat(40)} was asked for.`,
    );
  });

  it("says that nobody is there", async () => {
    const endpoint = new URL("http://127.0.0.1:9");
    await expect(bench.pull(name, bench.hub({ endpoint }))).rejects.toThrow(
      /^the list of org\/model's files: 127\.0\.0\.1:9 can't be reached.*, 5 times in a row\.$/,
    );
  });

  it("counts faults in a row: what makes progress is not given up", async () => {
    const files = modelFiles(1, 1_200_000);
    bench.server.put(name.repo, files);
    bench.server.fault(shard, ...Array.from({ length: 6 }, () => ({ cutAt: 140_000 })));
    expect((await overcome()).waits).toEqual(Array.from({ length: 6 }, () => 1000));
    expect(await faultsOf(bench.hub(), name.repo, [files])).toEqual([]);
  });

  it("gives up where a server begins anew each time and never ends", async () => {
    bench.server.put(name.repo, modelFiles());
    const endless = [
      { cutAt: 150_000 },
      ...Array.from({ length: 9 }, () => ({ whole: true, cutAt: 150_000 }) as const),
    ];
    bench.server.fault(shard, ...endless);
    await expect(bench.pull(name)).rejects.toThrow(/the connection broke.*, 5 times in a row\./);
  });
});

describe("what leads out of the folder", () => {
  it.each([
    "../../../../escaped.safetensors",
    "/tmp/escaped.safetensors",
    "..\\..\\escaped.safetensors",
    "C:\\escaped.safetensors",
    "a/../../escaped.safetensors",
    "con.safetensors",
    "shard:stream.safetensors",
    "shard.safetensors.",
  ])("refuses a shard called %s", async (path) => {
    const files = modelFiles();
    files.set("model.safetensors.index.json", text({ weight_map: { a: path } }));
    files.set(path, text("escaped"));
    bench.server.put(name.repo, files);
    await expect(bench.pull(name)).rejects.toThrow(
      /is not a path inside the folder|is no name that/,
    );
    expect((await readdir(bench.cache)).sort()).toEqual([".locks", "models--org--model"]);
    expect(bench.server.requests.some(({ at }) => at === "store")).toBe(false);
  });

  it("leaves a listed file alone that nobody reads, whatever it is called", async () => {
    const files = modelFiles().set("../../escaped", text("escaped"));
    bench.server.put(name.repo, files);
    await bench.pull(name);
    expect((await readdir(bench.cache)).sort()).toEqual([".locks", "models--org--model"]);
  });

  it.each([
    "../main",
    "a/../../b",
    "/etc",
    "a//b",
    "a\\b",
    ".hidden",
    "main.lock",
    "a b",
    "x:y",
    "",
  ])("takes %j for no revision", (revision) => {
    expect(parseHubName(`org/model@${revision}`)).toBeNull();
  });
});

describe("the token", () => {
  it("goes to the hub, and to nobody whom it names", async () => {
    bench.server.put(name.repo, modelFiles());
    await bench.pull(name, bench.hub({ token: "hf_secret" }));
    const told = (at: string) =>
      new Set(
        bench.server.requests.filter((each) => each.at === at).map((each) => each.authorization),
      );
    expect(told("hub")).toEqual(new Set(["Bearer hf_secret"]));
    expect(told("store")).toEqual(new Set([null]));
    expect(bench.server.requests[0]?.userAgent).toMatch(/^deltafold\/\d/);
  });
});
