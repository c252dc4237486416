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
/** Requests that may wait for a slot. */
export const queueRequestsMax = 64;
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
export const bodyBytesMax = 8_388_608;
export const jsonDepthMax = 64;
export const messagesMax = 4096;
