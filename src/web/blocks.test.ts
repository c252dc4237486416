import { afterEach, expect, test } from "vitest";
import { BlockSource } from "./blocks.ts";
import { MemoryDirectory } from "./directory.cases.ts";
import { findFile, type HttpFile } from "./http.ts";
import { openStore } from "./opfs.ts";
import { type Fault, type Serving, TestServer } from "./server.cases.ts";

const bytes = Uint8Array.from({ length: 1000 }, (_, at) => (at * 7 + (at >> 5)) % 256);
const servers: TestServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server[Symbol.asyncDispose]();
});

async function serve(serving: Partial<Serving> = {}): Promise<TestServer> {
  const file = { bytes, etag: '"a"', ...serving };
  const server = await TestServer.start((path) => (path === "/file" ? file : null));
  servers.push(server);
  return server;
}

async function found({ url }: TestServer): Promise<HttpFile> {
  return (await findFile(`${url}/file`))!;
}

test("reads any range of a file, and asks for each block once", async () => {
  const server = await serve();
  const source = new BlockSource(await found(server), null, 300);
  expect(source.size).toBe(1000);
  for (const [offset, length] of [
    [0, 1],
    [299, 2],
    [0, 1000],
    [999, 1],
    [500, 0],
    [1000, 0],
  ] as const) {
    expect(await source.read(offset, length)).toEqual(bytes.slice(offset, offset + length));
  }
  expect(server.asked.map((asked) => asked.bytes)).toEqual([2, 300, 300, 300, 100]);
});

test("reads at the same time share a request, and memory holds the last blocks alone", async () => {
  const server = await serve();
  const source = new BlockSource(await found(server), null, 100);
  const reads = [10, 20, 30].map((offset) => source.read(offset, 50));
  expect(await Promise.all(reads)).toEqual([10, 20, 30].map((at) => bytes.slice(at, at + 50)));
  expect(server.asked).toHaveLength(2);
  await source.read(0, 500);
  expect(server.asked).toHaveLength(6);
  await source.read(400, 100);
  expect(server.asked).toHaveLength(6);
  await source.read(0, 100);
  expect(server.asked).toHaveLength(7);
});

test("refuses a range outside the file without asking", async () => {
  const server = await serve();
  const source = new BlockSource(await found(server), null);
  await expect(source.read(990, 11)).rejects.toThrow(`${server.url}/file: bytes 990 to 1001`);
  expect(server.asked).toHaveLength(1);
});

test("takes the whole file, once, from a server without ranges", async () => {
  const server = await serve({ ranges: false });
  const file = await found(server);
  expect(file.ranges).toBe(false);
  const source = new BlockSource(file, null, 300);
  const halves = await Promise.all([source.read(0, 500), source.read(500, 500)]);
  expect(halves).toEqual([bytes.slice(0, 500), bytes.slice(500)]);
  expect(server.asked).toHaveLength(2);
});

test("knows empty files and absent ones", async () => {
  const server = await serve({ bytes: new Uint8Array() });
  expect(await found(server)).toMatchObject({ size: 0 });
  expect(await findFile(`${server.url}/other`)).toBeNull();
});

test.each([true, false])("takes a page for no file (ranges: %s)", async (ranges) => {
  const page = { headers: { "content-type": "text/html; charset=utf-8" } };
  const server = await serve({ ranges, fault: () => page });
  expect(await findFile(`${server.url}/file`)).toBeNull();
});

test.each<[string, Record<string, string>, string]>([
  ["the strong tag", { etag: '"a"', "last-modified": "today" }, '"a"'],
  ["the time before a weak tag", { etag: 'W/"a"', "last-modified": "today" }, "today"],
  ["nothing in a weak tag", { etag: 'W/"a"' }, ""],
])("takes for a file's version %s", async (_, headers, version) => {
  const server = await serve({ fault: () => ({ headers }) });
  expect(await found(server)).toMatchObject({ version, size: 1000 });
});

test.each<[string, Fault, string]>([
  ["fails", { status: 500 }, "status 500"],
  ["forbids", { status: 403 }, "status 403"],
  ["hides the range", { headers: { "content-range": null } }, "Expose-Headers"],
  ["doesn't know the size", { headers: { "content-range": "bytes 0-0/*" } }, "bytes 0-0/*"],
])("names the URL of a server that %s", async (_, fault, message) => {
  const server = await serve({ fault: () => fault });
  const asked = found(server);
  await expect(asked).rejects.toThrow(`${server.url}/file: `);
  await expect(asked).rejects.toThrow(message);
});

test.each([{ "content-length": null }, { "content-encoding": "identity" }])(
  "names the URL of a server that knows neither ranges nor the size: %o",
  async (headers) => {
    const server = await serve({ ranges: false, fault: () => ({ headers }) });
    await expect(found(server)).rejects.toThrow(`${server.url}/file: the server neither`);
  },
);

test("names the URL of a server that isn't there", async () => {
  const server = await TestServer.start(() => null);
  const url = `${server.url}/file`;
  await server[Symbol.asyncDispose]();
  await expect(findFile(url)).rejects.toThrow(`${url}: can't be fetched`);
});

test("a load that broke off goes on where it was", async () => {
  let answers = 0;
  const server = await serve({ fault: () => (++answers === 6 ? { status: 503 } : {}) });
  const file = await found(server);
  const cache = new MemoryDirectory().handle;
  const load = async () => new BlockSource(file, await openStore(cache, file), 100).read(0, 1000);
  await expect(load()).rejects.toThrow("status 503");
  server.asked.length = 0;
  expect(await load()).toEqual(bytes);
  expect(server.asked).toHaveLength(6);
});

const range = (text: string): Fault => ({ headers: { "content-range": text } });
test.each<[string, Fault, string]>([
  ["ignores the range", { status: 200 }, "status 200"],
  ["is out of order", { status: 503 }, "status 503"],
  ["has lost the file", { status: 404 }, "status 404"],
  ["sends too little", { bytes: 63 }, "63 of 64 bytes"],
  ["sends another range", range("bytes 64-127/1000"), "64 to 127"],
  ["sends less than asked", range("bytes 0-62/1000"), "0 to 62"],
  ["makes no sense", range("0-63"), 'Content-Range "0-63"'],
  ["has a longer file", range("bytes 0-63/1001"), "has changed"],
  ["has another file", { headers: { etag: '"b"' } }, "has changed"],
  ["has lost the tag", { headers: { etag: null } }, "has changed"],
  ["cuts", { headers: { "content-length": "64" }, bytes: 20, cut: true }, "connection broke"],
])("refuses a part where the server %s, and reads again when asked again", async (...row) => {
  const [, wrong, message] = row;
  let fault: Fault = {};
  const server = await serve({ fault: () => fault });
  const source = new BlockSource(await found(server), null, 64);
  fault = wrong;
  const read = source.read(0, 10);
  await expect(read).rejects.toThrow(`${server.url}/file: `);
  await expect(read).rejects.toThrow(message);
  fault = {};
  expect(await source.read(0, 10)).toEqual(bytes.slice(0, 10));
});

test.each<[string, Fault, string]>([
  ["has another file", { headers: { etag: '"b"' } }, "has changed"],
  ["has a shorter file", { headers: { "content-length": "10" }, bytes: 10 }, "has changed"],
  ["cuts", { bytes: 20, cut: true }, "connection broke"],
  ["fails", { status: 500 }, "status 500"],
])(
  "refuses a whole file where the server %s, and reads again when asked again",
  async (_, wrong, message) => {
    let fault: Fault = {};
    const server = await serve({ ranges: false, fault: () => fault });
    const source = new BlockSource(await found(server), null);
    fault = wrong;
    await expect(source.read(0, 1)).rejects.toThrow(message);
    fault = {};
    expect(await source.read(0, 10)).toEqual(bytes.slice(0, 10));
  },
);
