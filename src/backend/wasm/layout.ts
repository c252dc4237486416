/**
 * Numbers that the host (TypeScript) and the kernels (AssemblyScript) must agree on. Both compilers
 * read this very file, so it holds plain constants only.
 */

/** Bytes of one instruction: an op code and up to fifteen operands, 4 bytes each. */
export const INSTRUCTION_BYTES = 64;

// Control block, byte offsets from CONTROL_BASE. Each counter has a cache line of its own.
export const CONTROL_BASE = 1024;
/** The number of the pass; bumped by the host to start one, and workers wait on it. */
export const CONTROL_GENERATION = 0;
/** Nonzero asks the workers to end. */
export const CONTROL_EXIT = 4;
/** Bumped by the thread that ended the pass; the host waits on it. */
export const CONTROL_DONE = 128;
/** Touched where the host needs its writes in order. */
export const CONTROL_FENCE = 64;
/** Threads that sleep until a step is done. */
export const CONTROL_SLEEPERS = 192;
/** One word a thread: the last pass that it has left. */
export const CONTROL_LEFT = 1024;

/** Behind the control block: constants of `kernels/math.ts`. */
export const CONSTANTS_BASE = 3072;
/** Behind them what the host places. */
export const ARENA_START = 4096;

// A step's counters, each on a cache line of its own: units claimed, units done.
export const STEP_CLAIMED = 0;
export const STEP_DONE = 64;
export const STEP_BYTES = 128;
/** Counters start at pass · 2^UNIT_BITS, so that a thread that missed the end of a pass claims nothing. */
export const UNIT_BITS = 20;

// Pass blocks, one of each kind side by side, so that a pass can hold several kinds, which run in this order.
// The host writes them before each pass. Byte offsets from the first:
/** Windows to commit; they count as rows, and the segments are their kept rows. */
export const PASS_KEEP = 0;
/** Rows that extend a drafter's context. */
export const PASS_CONTEXT = 64;
/** Rows of blocks to draft. */
export const PASS_BLOCK = 128;
/** The target's rows. */
export const PASS_TARGET = 192;
export const PASS_KINDS_BYTES = 256;

// Within a block, byte offsets from its start.
/** Rows, and those of them that draw; zero where the pass has none of the kind. */
export const PASS_ROWS = 0;
export const PASS_DRAWS = 4;
export const PASS_SEGMENTS = 8;
/** Pointers to i32 [rows]: token ids, absolute positions, segment of each row. */
export const PASS_IDS = 12;
export const PASS_POSITIONS = 16;
export const PASS_ROW_SEGMENTS = 20;
/** Pointer to i32 [draws]: the rows whose logits are wanted. */
export const PASS_DRAW_ROWS = 24;
/** Pointer to segment records. */
export const PASS_SEGMENT_TABLE = 28;
/** Pointer to f32 [rows, dims that rotate]: cosines then sines of each row's angles. */
export const PASS_ROPE = 32;
/** Windows to commit, where any of them keeps rows that have to move to their places. */
export const PASS_MOVES = 36;
export const PASS_BYTES = 64;

// Segment record.
export const SEGMENT_FIRST_ROW = 0;
export const SEGMENT_ROWS = 4;
export const SEGMENT_STATE_SLOT = 8;
export const SEGMENT_NEXT_SLOT = 12;
/** Pointer to i32 page ids. */
export const SEGMENT_PAGES = 16;
/** 1 where the rows are scanned without storing the state. */
export const SEGMENT_WINDOW = 20;
/** Absolute position and place of the first row. */
export const SEGMENT_START = 24;
/**
 * Of a tree, pointer to i32 [rows, WINDOW_ROWS]: each row's ancestors and itself, the root first; of a
 * window to commit, to i32 [WINDOW_ROWS]: the kept rows. 0: each row's parent is the row before it.
 */
export const SEGMENT_PATHS = 28;
export const SEGMENT_BYTES = 32;

// Op codes.
export const OP_EMBED = 1;
export const OP_NORM = 2;
export const OP_PROJECT = 3;
export const OP_CONV = 4;
export const OP_SCAN = 5;
export const OP_GATED_NORM = 6;
export const OP_ROPE = 7;
export const OP_ATTEND = 8;
export const OP_SWIGLU = 9;
export const OP_TAP = 10;
export const OP_KEEP = 11;
export const OP_MOVE_KV = 12;
export const OP_MOVE_FEATURES = 13;
export const OP_FEATURE = 14;
export const OP_GATHER = 15;
export const OP_DYNAMIC_CONV = 16;
export const OP_READ = 17;

// Attention record: sizes and rules of ROPE, ATTEND and MOVE_KV.
export const ATTENTION_HEADS = 0;
export const ATTENTION_KV_HEADS = 4;
export const ATTENTION_HEAD_DIM = 8;
export const ATTENTION_ROTARY_DIM = 12;
export const ATTENTION_PAGE_BYTES = 16;
/** Heads from one query to the next in its row: 2 where each is followed by its gate. */
export const ATTENTION_QUERY_STEP = 20;
/** How far back a row sees what was before its segment; 0: all of it. */
export const ATTENTION_WINDOW = 24;
/** 1 where a row sees all of its segment, not just the rows before it. */
export const ATTENTION_WHOLE = 28;

// Ring record: a slot's features by place.
export const RING_AT = 0;
export const RING_SLOT_BYTES = 4;
export const RING_ROWS = 8;
export const RING_ROW_BYTES = 12;

// Matrix record: what a packed matrix is and where it lies.
export const MATRIX_KIND = 0;
export const MATRIX_ROWS = 4;
export const MATRIX_COLS = 8;
export const MATRIX_GROUP = 12;
/** Pointer to codes or floats, in blocks of four rows. */
export const MATRIX_DATA = 16;
/** Pointer to [row block, group, 8]: four scales, then four biases. */
export const MATRIX_SCALES = 20;
/** The bits of a word that hold its lowest code; of bf16, its upper float. */
export const MATRIX_MASK = 24;
/** 1 where these are bf16; 0: f32. */
export const MATRIX_NARROW = 28;
/** Of a matrix that lies in another memory (far.ts), which one, from 1; 0: in this one. */
export const MATRIX_FAR = 32;
export const MATRIX_BYTES = 36;

export const KIND_AFFINE4 = 1;
export const KIND_AFFINE8 = 2;
export const KIND_BF16 = 3;
export const KIND_F32 = 4;

/** Bytes of weights that are asked for in one go, a power of two. */
export const READ_AHEAD = 1024;
/** Weight rows that share a block: one cache line holds a step of all four. */
export const BLOCK_ROWS = 4;
/** Blocks of a matrix in another memory that a thread multiplies by in one go. */
export const FAR_BLOCKS = 256;
/** Activation rows that a thread prepares at a time, for blocks that it then reads once. */
export const ROW_TILE = 32;
/** Columns of the state that are scanned at a time. */
export const SCAN_COLUMNS = 16;
/** Rows of a window's log (limits.ts windowRowsMax). */
export const WINDOW_ROWS = 16;
/** KV rows a page, and the attention tile (limits.ts pageRows). */
export const PAGE_ROWS = 64;

/** Activations of projections: f32, or int8 per weight group. */
export const ACTIVATIONS_F32 = 0;
export const ACTIVATIONS_INT8 = 1;

/** A thread's scratch: sums of a panel of rows or weights of a tile of keys, then prepared activations. */
export const SCRATCH_PREPARED = 512;
/** Matrix records and outputs that one PROJECT instruction lists, 16 bytes each. */
export const PROJECTION_BYTES = 16;
