/** Branded numbers: a slot can't be passed where a page is meant. The brands cost nothing at run time. */
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

export const slotId = (index: number): SlotId => index as SlotId;
export const pageId = (index: number): PageId => index as PageId;
export const streamId = (index: number): StreamId => index as StreamId;
