import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { bytesOf } from "../floats.ts";
import { ggufTypes } from "./blocks.ts";

/** Two random blocks of each type, and SHA-256 of their values as gguf-py 0.19.0 dequantises them. */
const golden: readonly (readonly [type: number, name: string, blocks: string, sha: string])[] = [
  [
    2,
    "Q4_0",
    "fhS4q+6rFM71mcwFJTXVzsCtqZ0/YOyDdgRXoXxHKkntEML6",
    "7d3f02ebe89ad78aebc99f239b47152f6004e8f2c11cbc3bde0c3183adb1c0d0",
  ],
  [
    8,
    "Q8_0",
    "b6TODc41jSG1J5cLtIpCAKViewyQuBgmgQHK/1U25DB/qduSbfcQwE7cCDy9tUBICLlYb7+KY0MwRGT5Qyh/LSEzzuU=",
    "74354a19fdfe65c90ce9cd3d46be2b96ea6e55529ea6cdb976b506a431f84890",
  ],
  [
    12,
    "Q4_K",
    "oKFOoK3BNn5+OXaqa4M7rTSLtak/xJAPiomH9Q+MO478jEznM9p9RZd1jFy90TDhR9nYL3xbcBAtWLhfSNferSSSSx++Hr7evktPV/+LMTqFCWGLhxg85TRrSeLCM0jfSr10TlyLvQS4XTTH820etc3CXsVZn04AbS+xCfp13IAPrcxVdGnJb5Trae67YAg0yZprI+9wL1Pi64JLwCBkzulbOScGAQNRSs5oHoJkJyawg/BHiq7RsrwOXZRDydNyqYBnK2lMh8zW077Mec5KPAjSSA84aN1R8pVgJZXnxMwNQAGFsTfPgSM2YkqMcqKB1Ger9+g3dzy+6Z/EUKa4AwuBVVDzwufubBoL39Wt+BWDc9HXcx9N2BweCnSebi1e",
    "8d58efdac05732fe0898ec4b76ff60284b42c89a572960fc655cad0b0e9989bd",
  ],
  [
    14,
    "Q6_K",
    "D5S1rEWCeT3sTq5Qgc/NvY2EiTLqzaSso0TQ8aISKK9MuGyleTG9dhzvx/dIsM04C5EYWzKnFKSGmp6nmzdqGxjViimfejWx1xY415W1qKKf9fnu9x9jYIWuaFSnBmzMEtGEClKnqzFTvWExiR31YxA+KigpZUXM3bi32HnVZmFSb4IHQBGYtjNSlRuB982c5PHLK55w5fBbVXOte4be/Y2v753W2EK5wwRAYEtjEM+MKeocgykiJ2lNOlzr+X+2dC9JfFDp/di+fAXxCbu2ZtKgiGxry6GNfns9pZS1v3oqPCSaaMNh9dPP57vbHjlRec3ibPUC72YqqX8mgEc8AFO9vsqyNpFrOqkNWvHLpaHz3mSQOpxZ72GhjZ2TEXbswQ0mlIYyzVO/2ZxSBf8l/QX3BJYCdwswDo2s1O2kwNI3Kv8CYihCKLUDPbGZi7RnHztQV58lzxIhG7YwfHCo2yBHAdVBHCzUZQRekkE7ySOfw4xSNnPwhoE++/6mjxVCwXhkjCQD5X1E3reAp+iejay/XLRi/TMbsXIf+4a3R919jqUg",
    "b20c1dae178279c987edb445c44da74a122c1ad1337c34721b38a5b09f258c86",
  ],
];

describe("blocks of GGUF files", () => {
  it.each(golden)("type %i, %s, has the values that gguf-py finds", (number, name, text, sha) => {
    const type = ggufTypes.get(number);
    const blocks = Uint8Array.from(Buffer.from(text, "base64"));
    expect(type).toMatchObject({ name, bytes: blocks.length / 2 });
    const values = new Float32Array(2 * (type?.values ?? 0));
    type?.decode(blocks, values);
    expect(createHash("sha256").update(bytesOf(values)).digest("hex")).toBe(sha);
  });

  it.each([
    [0, "0000803f000000c0", [1, -2]],
    [1, "003c00c0", [1, -2]],
    [30, "803f00c0", [1, -2]],
  ])("type %i holds floats", (number, hex, expected) => {
    const values = new Float32Array(2);
    ggufTypes.get(number)?.decode(Uint8Array.from(Buffer.from(hex, "hex")), values);
    expect([...values]).toEqual(expected);
  });
});
