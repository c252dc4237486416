import { expect, test } from "vitest";
import { hostsValue, keyValue, originsValue } from "./access-values.ts";

test("each flag adds to those before", () => {
  expect(keyValue("b", keyValue("a"))).toEqual(["a", "b"]);
  expect(hostsValue("b, c", hostsValue("a"))).toEqual(["a", "b", "c"]);
  expect(originsValue("*", originsValue("http://a"))).toEqual(["http://a", "*"]);
});

test.each(["example.org", "Box", "my_box-2.lan", "10.0.0.1", "[fd00::1]"])(
  "%j is a host",
  (text) => {
    expect(hostsValue(text)).toEqual([text]);
  },
);

test.each(["", "a,", "a b", "example.org:80", "http://a", "fd00::1", "a/b", "*"])(
  "%j is no host",
  (text) => {
    const rule = "It must be host names without ports, such as example.org or [fd00::1].";
    expect(() => hostsValue(text)).toThrow(rule);
  },
);

test.each([
  "https://example.org",
  "http://localhost:3000",
  "http://[::1]:3000",
  "chrome-extension://abcdef",
  "vscode-webview://1x2y",
  "*",
])("%j is an origin", (text) => {
  expect(originsValue(text)).toEqual([text]);
});

test.each([
  "",
  "example.org",
  "https://example.org/",
  "https://example.org:443",
  "https://EXAMPLE.org",
  "https://a@example.org",
  "https://*.example.org",
  "https://",
  "null",
  "file:///",
  "file://",
  "chrome-extension://abcdef/page",
  "javascript:alert(1)",
])("%j is no origin", (text) => {
  const rule = "It must be origins such as https://example.org:8443, or *.";
  expect(() => originsValue(text)).toThrow(rule);
});
