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
/** The same in a browser's tab. */
export const kvBytesWeb = 1_073_741_824;
/** What cached prompts may take, unless the user says or there is less. */
export const promptCacheBytesDefault = 1_073_741_824;
/** The same in a browser's tab. */
export const promptCacheBytesWeb = 268_435_456;
/** What spilled prompts must leave free on their disk. */
export const spillFreeBytesMin = 4_294_967_296;
/** The share of the time that replies have while prompts are computed. */
export const decodeShareDefault = 0.25;
/** A context for which no stream is left out: the default is cut down to this before there are fewer. */
export const contextTokensEnough = 32_768;
/** The least context by default for which memory is asked. */
export const contextTokensLeast = 4096;
/** What a context by default may take of the memory that is free, with all the rest. */
export const memoryShareDefault = 0.9;
/** Reply length when a request names none, cut to the room that is left. */
export const replyTokensDefault = 4096;
/** Chances of a prompt's tokens in one reply, the likeliest beside each counted too. */
export const promptChancesMax = 1_048_576;
/** Tokens named beside each that is drawn, where their chances are asked for. */
export const topLogprobsMax = 20;
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
/** How long an event stream is silent before a comment says that it goes on, unless the user says. */
export const pingMsDefault = 15_000;
/** Connections at once, unless the user says. */
export const connectionsMaxDefault = 2048;
/** Request line and headers of a request, and how many headers. */
export const requestHeadBytesMax = 16_384;
export const requestHeadersMax = 100;
export const urlCharactersMax = 8192;
/** API keys of a server, the characters of one, and the file that they are read from. */
export const keysMax = 1024;
export const keyCharactersMax = 256;
export const keyFileBytesMax = 1_048_576;
export const bodyBytesMax = 8_388_608;
export const jsonDepthMax = 64;
/** Commas and colons of a request's body: those of a million tokens, and of more fields than anyone has. */
export const bodySeparatorsMax = 1_500_000;
/** Tools that a request may offer. */
export const toolsMax = 1024;
export const messagesMax = 4096;
/** Characters of a prompt's text for each token of the context: ordinary text has 3 to 5. */
export const promptCharsPerTokenMax = 16;
/** What is read of a prompt's text at least, however small the context. */
export const promptCharsMin = 131_072;
/** Characters of a text, or steps in a long word, that are encoded before others have their turn. */
export const turnCharacters = 32_768;
/** Tokens of a request for their text. */
export const detokenizedTokensMax = 1_048_576;
/** Responses that are kept for later requests: the newest. */
export const storedResponsesMax = 1024;
/** What they may take together, by the length of their JSON. */
export const storedResponseBytesMax = 268_435_456;
/** What a request may attach to its response. */
export const metadataPairsMax = 16;
export const metadataKeyCharsMax = 64;
export const metadataValueCharsMax = 512;

/** What describes a reply's form, as JSON; and of that, EBNF and regexes. */
export const grammarCharsMax = 262_144;
export const ebnfCharsMax = 65_536;
export const regexCharsMax = 8192;
export const choicesMax = 4096;
export const propertyNameCharsMax = 256;
/** How often a repeat with a bound may come. */
export const grammarRepeatsMax = 10_000;
/** What a form takes to be made, in steps of about a microsecond. */
export const formWorkMax = 75_000;
/** Letters of the names that an object's other names must not be, where they differ. */
export const otherNameLettersMax = 8192;
/** Instructions of a grammar's program, and of those written again. */
export const grammarPlacesMax = 100_000;
/** Places that states of one grammar have together before they are made anew. */
export const grammarStateItemsMax = 250_000;
/** Nodes of the vocabulary's trie that are looked at for a token of a reply, or as much other work. */
export const grammarTokenStepsMax = 4_000_000;
/** Words of the token sets that are kept of one grammar, of 4 bytes. */
export const grammarMaskWordsMax = 1_048_576;
/** Grammars that are kept for requests that ask for them again, and their instructions together. */
export const grammarsKeptMax = 64;
export const grammarPlacesKeptMax = 400_000;
/** Bytes of what ends a reply in its form: what needs more is cut where its tokens end. */
export const grammarEndingBytesMax = 4096;
/** Tokens beside those of an ending, up to which every draw must leave it room: at least so many. */
export const grammarEndingSpareTokens = 64;

/** Requests of a batch, its file, and what a line of it may have around its body: OpenAI's limits. */
export const batchRequestsMax = 50_000;
export const batchFileBytesMax = 209_715_200;
export const batchEnvelopeBytesMax = 65_536;
export const customIdCharsMax = 512;
/** How often a request of a batch is tried, unless the user says. */
export const batchAttemptsDefault = 5;
/** How long a worker isn't heard of until others take up what it has, unless the user says. */
export const batchLockMsDefault = 30_000;
