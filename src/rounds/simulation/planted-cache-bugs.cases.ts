import { FakeBackend } from "../../backend/fake/fake.ts";
import type { SlotId, TokenId } from "../../ids.ts";
import { PrefixCache } from "../../state/prefix-cache.ts";
import { SpillStore } from "../../state/spill-store.ts";
import { StreamMemory } from "../stream-memory.ts";
import { patchMethod } from "./patch.cases.ts";
import { type PlantedBug, together } from "./planted-bug.cases.ts";

/** Bugs in what is cached. */
export const cacheBugs: readonly PlantedBug[] = [
  { name: "the last token of a match is not looked at", foundBy: ["tokens"], plant: carelessMatch },
  {
    name: "a match leaves no token to feed",
    foundBy: ["error"],
    plant: () =>
      patchMethod(PrefixCache.prototype, "longest", (longest) => {
        return function (this: PrefixCache, ids, needsContext) {
          return longest.call(this, [...ids, 0], needsContext);
        };
      }),
  },
  {
    name: "a state without the drafter's context is good enough for drafts",
    foundBy: ["error", "fingerprint"],
    plant: () =>
      patchMethod(PrefixCache.prototype, "longest", (longest) => {
        return function (this: PrefixCache, ids) {
          return longest.call(this, ids, false);
        };
      }),
  },
  {
    name: "another slot's state is held",
    foundBy: ["tokens", "fingerprint"],
    plant: () =>
      patchMethod(FakeBackend.prototype, "hold", (hold) => {
        return async function (this: FakeBackend, slot) {
          return await hold.call(this, anotherOf(this, slot));
        };
      }),
  },
  {
    name: "another slot's fingerprint is taken",
    foundBy: ["fingerprint"],
    plant: () =>
      patchMethod(FakeBackend.prototype, "save", (save) => {
        return async function (this: FakeBackend, source, pages, rows) {
          const from = typeof source === "number" ? anotherOf(this, source) : source;
          return await save.call(this, from, pages, rows);
        };
      }),
  },
  {
    name: "a reply is cached with a token that was not fed",
    foundBy: ["tokens", "fingerprint"],
    plant: () =>
      patchMethod(StreamMemory.prototype, "keep", (keep) => {
        return async function (this: StreamMemory, stream, kind) {
          const { rows } = stream;
          if (kind === "reply" && stream.toFill > 0) stream.rows = rows + 1;
          await keep.call(this, stream, kind);
          stream.rows = rows;
        };
      }),
  },
  {
    name: "the cache takes more than it may",
    foundBy: ["cache"],
    plant: () => patchMethod(PrefixCache.prototype, "makeRoom", () => async () => true),
  },
  {
    name: "a state that is known is not used",
    foundBy: ["cache"],
    plant: () =>
      patchMethod(PrefixCache.prototype, "longest", (longest) => {
        return function (this: PrefixCache, ids, needsContext) {
          const found = longest.call(this, ids, needsContext);
          return found && found.rows % 64 === 0 ? null : found;
        };
      }),
  },
  {
    name: "a row too many is said to be cached",
    foundBy: ["cached rows"],
    plant: () =>
      patchMethod(StreamMemory.prototype, "begin", (begin) => {
        return async function (this: StreamMemory, stream) {
          const begun = await begin.call(this, stream);
          const { rows = 0, miss = null } = stream.cached ?? {};
          if (begun && rows > 0) stream.cached = { rows: rows + 1, miss };
          return begun;
        };
      }),
  },
  {
    name: "states of a lost device are still known",
    foundBy: ["misuse", "leak"],
    plant: () => patchMethod(StreamMemory.prototype, "clear", () => () => {}),
  },
  { name: "another file is read than was asked for", foundBy: ["tokens"], plant: anotherFile },
];

const anotherOf = ({ openSlots }: FakeBackend, slot: SlotId): SlotId =>
  [...openSlots].find((open) => open !== slot) ?? slot;

/** Each entry's last token is whatever is asked for. */
function carelessMatch(): () => void {
  let asked: readonly TokenId[] | null = null;
  return together(
    patchMethod(PrefixCache.prototype, "add", (add) => {
      return function (this: PrefixCache, prefix, held) {
        const last = String(prefix.rows - 1);
        const ids = new Proxy(prefix.ids, {
          get: (own, key) => Reflect.get(key === last && asked ? asked : own, key),
        });
        add.call(this, { ...prefix, ids }, held);
      };
    }),
    patchMethod(PrefixCache.prototype, "longest", (longest) => {
      return function (this: PrefixCache, ids, needsContext) {
        asked = ids;
        const found = longest.call(this, ids, needsContext);
        asked = null;
        return found;
      };
    }),
  );
}

function anotherFile(): () => void {
  let before: string | null = null;
  return patchMethod(SpillStore.prototype, "read", (read) => {
    return async function (this: SpillStore, name) {
      const other = before ?? name;
      before = name;
      return await read.call(this, other);
    };
  });
}
