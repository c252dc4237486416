import type { Drafting } from "../draft/drafting.ts";

const token = 5;

/** Rows of a fake by which every reply says one token for ever. */
export const sameTokenLogits = (row: Float32Array): void => {
  row.fill(0);
  row[token] = 1000;
};

/** Proposes three tokens for such a reply, of which two are right. */
export const sameTokenDrafting: Drafting = {
  push: () => {},
  wish: (most) => {
    const ids = [token, token, token + 1].slice(0, most);
    return { kind: "proposal", proposal: { ids, parents: null, drafter: "copy" } };
  },
  choose: () => null,
  landed: () => {},
  idle: () => {},
};
