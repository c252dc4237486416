import { PagePool, PageTable } from "../../state/kv-pages.ts";
import { PrefixCache } from "../../state/prefix-cache.ts";
import { patchMethod } from "./patch.cases.ts";
import { type PlantedBug, together } from "./planted-bug.cases.ts";

/** Bugs in who has which page. */
export const pageBugs: readonly PlantedBug[] = [
  {
    name: "a page that isn't full is shared, not copied",
    foundBy: ["tokens", "fingerprint"],
    plant: sharedPartialPage,
  },
  { name: "the cache doesn't hold its pages", foundBy: ["tokens", "error"], plant: unsharedPages },
  {
    name: "a stream's last page is never given back",
    foundBy: ["leak"],
    plant: () =>
      patchMethod(PageTable.prototype, "release", (release) => {
        return function (this: PageTable) {
          this.pages.pop();
          release.call(this);
        };
      }),
  },
];

function sharedPartialPage(): () => void {
  let latest: PagePool;
  return together(
    patchMethod(PagePool.prototype, "take", (take) => {
      return function (this: PagePool) {
        latest = this;
        return take.call(this);
      };
    }),
    patchMethod(PageTable.prototype, "adopt", (adopt) => {
      return function (this: PageTable, pages, rows) {
        const copy = adopt.call(this, pages, rows);
        if (!copy) return null;
        latest.give(copy.to);
        latest.share(copy.from);
        this.pages.splice(-1, 1, copy.from);
        return null;
      };
    }),
  );
}

function unsharedPages(): () => void {
  let adding = false;
  return together(
    patchMethod(PrefixCache.prototype, "add", (add) => {
      return function (this: PrefixCache, prefix, held) {
        adding = true;
        add.call(this, prefix, held);
        adding = false;
      };
    }),
    patchMethod(PagePool.prototype, "share", (share) => {
      return function (this: PagePool, page) {
        if (!adding) share.call(this, page);
      };
    }),
  );
}
