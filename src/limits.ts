/** The bounds that layers share, each with its unit in its name. Imports nothing. */

/** KV rows a page, and the tile by which attention walks the keys. */
export const pageRows = 64;
/** Rows of all streams in a decode round. */
export const roundRowsMax = 128;
/** Rows of a window: a pending token and its drafts. */
export const windowRowsMax = 16;
/** Compute threads; more than any machine at hand has cores, and each takes memory. */
export const threadsMax = 256;
/** Rows of a prompt chunk unless the caller asks for fewer. */
export const promptChunkRows = 256;
/** Requests that may wait for a slot, unless the user says. */
export const queueRequestsMax = 64;
/** Streams that are served at once, where the memory is there. */
export const parallelDefault = 8;
/** Keys and values of all streams together, unless the user says. */
export const kvBytesDefault = 4_294_967_296;
/** What cached prompts may take, unless the user says or there is less. */
export const promptCacheBytesDefault = 1_073_741_824;
/** The same in a browser's tab. */
export const promptCacheBytesWeb = 268_435_456;
/** What spilled prompts must leave free on their disk. */
export const spillFreeBytesMin = 4_294_967_296;
/** The share of the time that replies have while prompts are computed. */
export const decodeShareDefault = 0.25;
/** Context unless the user says or the checkpoint supports less. */
export const contextTokensDefault = 32_768;
/** Reply length when a request names none, cut to the room that is left. */
export const replyTokensDefault = 4096;
export const stopStringsMax = 16;
export const stopStringBytesMax = 256;
/** Tokens that a request's logit_bias may name. */
export const logitBiasEntriesMax = 1024;

/** Header of a safetensors file; the format itself allows 100 MB. */
export const safetensorsHeaderBytesMax = 25_000_000;
export const tensorsMax = 100_000;
export const tensorDimsMax = 8;
export const tensorNameBytesMax = 1024;
/** config.json, index and generation_config files. */
export const jsonFileBytesMax = 67_108_864;

/** For a connection to bring the headers of a request. */
export const requestHeadersMsMax = 10_000;
/** For it to bring the whole request; a reply may take longer. */
export const requestMsMax = 30_000;
/** For a client to read on, where events of its reply wait for it. */
export const unreadMsMax = 60_000;
export const bodyBytesMax = 8_388_608;
export const jsonDepthMax = 64;
export const messagesMax = 4096;
