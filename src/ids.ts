/**
 * Numbers that name something. Those of slots, pages and streams are branded, so that none is passed
 * where another is meant; the brands cost nothing at run time. Tokens and positions are plain: they
 * fill typed arrays and are counted with.
 */
declare const brand: unique symbol;
type Branded<Name extends string> = number & { readonly [brand]: Name };

/** A row of the vocabulary. */
export type TokenId = number;
/** The absolute index of a token in its stream, from 0. */
export type Position = number;
/** What a stream occupies on the device, from 0. */
export type SlotId = Branded<"slot">;
/** A page of 64 KV rows, from 0. */
export type PageId = Branded<"page">;
/** A request's timeline, unique in the engine's life. */
export type StreamId = Branded<"stream">;

/** The slot at an index of the backend's slots. */
export const slotId = (index: number): SlotId => index as SlotId;
/** The page at an index of the backend's pages. */
export const pageId = (index: number): PageId => index as PageId;
/** The stream with a number of the engine's count. */
export const streamId = (index: number): StreamId => index as StreamId;
