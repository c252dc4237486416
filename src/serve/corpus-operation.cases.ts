/** What is recorded of everything but replies: errors, keys, hosts, origins, tokens, metrics, clients that go. */
import { type BadRequest, badRequests } from "./bad-requests.cases.ts";
import type { Ask, CorpusGroup } from "./corpus.cases.ts";
import { chatPath, hello, textPath } from "./http.cases.ts";
import { ApiKeys } from "./keys.ts";

const get = (path: string, headers: Record<string, string> = {}, what = path): Ask => ({
  ...{ what, method: "GET", path, headers },
});

const errorCharsMax = 400;
const isShort = ({ body, path }: BadRequest) =>
  (body?.length ?? 0) <= errorCharsMax && path.length <= errorCharsMax;
const errors: Ask[] = badRequests.filter(isShort).map((bad) => ({
  ...{ what: bad.what, method: bad.method, path: bad.path, body: bad.body },
  ...{ headers: bad.headers, headersAreAll: true },
}));

const described: Ask[] = [
  get("/v1/models"),
  get("/v1/models/nano"),
  get("/v1/models/nano?x=1"),
  { what: "the head of models", method: "HEAD", path: "/v1/models" },
  get("/health"),
  get("/health/live"),
  get("/health/ready"),
  get("/props"),
  get("/slots"),
  { what: "embeddings", path: "/v1/embeddings", body: { input: "Once", model: "nano" } },
  get("/v1/models", { "X-Request-Id": "mine-1" }, "an id of the client's"),
  get("/v1/models", { "X-Request-Id": "a b" }, "an id that is none"),
];

const tokens: Ask[] = [
  { what: "a text", path: "/tokenize", body: { prompt: "Once upon" } },
  {
    what: "its strings",
    path: "/v1/tokenize",
    body: { prompt: "é\u{1F980}", return_token_strs: true },
  },
  { what: "a text of llama.cpp's", path: "/tokenize", body: { content: "Once upon" } },
  { what: "nothing", path: "/tokenize", body: { prompt: "" } },
  { what: "special tokens", path: "/tokenize", body: { prompt: "<|im_start|>" } },
  { what: "messages", path: "/tokenize", body: { messages: hello } },
  { what: "both", path: "/tokenize", body: { prompt: "a", messages: hello } },
  { what: "a prompt", path: "/apply-template", body: { messages: hello } },
  { what: "tokens", path: "/detokenize", body: { tokens: [1, 2, 3] } },
  { what: "no tokens", path: "/v1/detokenize", body: { tokens: [] } },
  { what: "a token past the last", path: "/detokenize", body: { tokens: [8192] } },
];

const asked = { messages: hello, max_tokens: 1 };
const bearer = (key: string) => ({ Authorization: `Bearer ${key}` });
const withKey = (what: string, headers: Record<string, string>): Ask => ({
  ...{ what, path: chatPath, headers, body: asked, says: "Hm" },
});
const keys: Ask[] = [
  withKey("no key", {}),
  withKey("a key", bearer("secret-1")),
  withKey("another's key", bearer("secret-2")),
  withKey("a wrong key", bearer("secret-3")),
  withKey("an empty key", bearer("")),
  withKey("another scheme", { Authorization: "Basic secret-1" }),
  withKey("Anthropic's header", { "X-Api-Key": "secret-1" }),
  withKey("a wrong key in it", { "X-Api-Key": "secret-3" }),
  withKey("a line in a key", bearer("a\\r\\nb")),
  { what: "messages without a key", path: "/v1/messages", body: asked },
  get("/health"),
  get("/health", bearer("secret-1"), "health for who has a key"),
  get("/health/ready"),
  get("/metrics", {}, "metrics without a key"),
  get("/v1/models", {}, "models without a key"),
  get("/v1/unknown", {}, "nothing without a key"),
];

const page = "https://page.example";
const hosts: Ask[] = [
  get("/v1/models", { Host: "localhost:8000" }, "this machine"),
  get("/v1/models", { Host: "[::1]:8000" }, "this machine by its number"),
  get("/v1/models", { Host: "Models.Example" }, "an allowed host"),
  get("/v1/models", { Host: "evil.example" }, "another host"),
  get("/health/ready", { Host: "evil.example" }, "a probe for another host"),
  get("/v1/models", { Host: "localhost.evil.example" }, "one that begins alike"),
  get("/v1/models", { Host: "a b" }, "no host"),
  get("/v1/models", { Origin: page }, "an allowed page"),
  get("/v1/models", { Origin: "https://evil.example" }, "another page"),
  {
    what: "an allowed page asks first",
    method: "OPTIONS",
    path: chatPath,
    headers: {
      Origin: page,
      "Access-Control-Request-Method": "POST",
      "Access-Control-Request-Headers": "authorization,content-type",
    },
  },
  {
    what: "another page asks first",
    method: "OPTIONS",
    path: chatPath,
    headers: { Origin: "https://evil.example", "Access-Control-Request-Method": "POST" },
  },
  withKey("an allowed page's chat", { Origin: page, "Sec-Fetch-Site": "cross-site" }),
  withKey("another page's chat", {
    Origin: "https://evil.example",
    "Sec-Fetch-Site": "cross-site",
  }),
];

const long = { max_tokens: 900, ignore_eos: true, stream: true };
const gone: Ask[] = [
  {
    what: "a chat's client goes at its first event",
    path: chatPath,
    body: { messages: hello, ...long },
    leavesAfter: 1,
  },
  { what: "a completion's", path: textPath, body: { prompt: "Once", ...long }, leavesAfter: 2 },
  {
    what: "a response's",
    path: "/v1/responses",
    body: { input: "Hello", max_output_tokens: 900, ignore_eos: true, stream: true },
    leavesAfter: 2,
  },
  {
    what: "a message's",
    path: "/v1/messages",
    body: { messages: hello, max_tokens: 900, stream: true },
    leavesAfter: 1,
  },
  { what: "the next is served", path: chatPath, body: asked },
];

const metrics: Ask[] = [
  get("/metrics", {}, "before all else"),
  { what: "a chat", path: chatPath, body: asked, says: "Hm" },
  { what: "a completion", path: textPath, body: { prompt: "Once" }, says: "there was" },
  { what: "a refusal", path: chatPath, body: {} },
  get("/metrics", {}, "after these"),
  get("/v1/metrics", {}, "by its other name"),
];

const ownKeys = [1, 2].map((number) => ({ label: `client-${number}`, key: `secret-${number}` }));

export const operationGroups: readonly CorpusGroup[] = [
  { name: "errors", server: { contextTokens: 512 }, asks: errors },
  { name: "described", asks: described },
  { name: "tokens", asks: tokens },
  { name: "keys", server: { app: { keys: new ApiKeys(ownKeys) } }, logs: true, asks: keys },
  {
    name: "hosts",
    server: { app: { hosts: ["models.example"], corsOrigins: [page] } },
    asks: hosts,
  },
  { name: "cancel", server: { logits: () => {} }, logs: true, asks: gone },
  { name: "metrics", asks: metrics },
];
