import { draftPrefix } from "../../model/drafter-steps.ts";
import type { RowBuffer } from "../../model/forward.ts";
import { type Encoding, floatWord, type Instruction, rowOf } from "./encoding.ts";
import { OP_ATTEND, OP_MOVE_KV, OP_ROPE, PASS_KEEP, PASS_MOVES } from "./layout.ts";
import type { KvPlaces } from "./places.ts";

/** Attention of one layer: its keys and values, and the rules by which rows see them. */
interface AttentionLayer {
  readonly kv: KvPlaces;
  readonly layer: number;
  /** Query heads. */
  readonly heads: number;
  readonly rotaryDim: number;
  /** Heads from one query to the next in its row: 2 where each is followed by its gate. */
  readonly queryStep: 1 | 2;
  /** How far back a row sees what was before its segment; 0: all of it. */
  readonly window: number;
  /** Whether a row sees all of its segment, or only the rows before it. */
  readonly whole: boolean;
}

/** queryGate, key, value → query, and the KV pages. */
export function encodeTargetRope(encoding: Encoding, module: string, layer: number): Instruction {
  const buffers = { queries: "queryGate", key: "key", value: "value", out: "query" } as const;
  return rope(encoding, targetLayer(encoding, layer), module, buffers);
}

/** query, queryGate, KV pages → attended. */
export function encodeTargetAttend(encoding: Encoding, layer: number): Instruction {
  const gates = rowOf(encoding, "queryGate");
  return attend(encoding, targetLayer(encoding, layer), "query", gates, "attended");
}

/** Moves kept rows to their places in one layer. */
export function encodeMoveKv(encoding: Encoding, layer: number): Instruction {
  const attention = targetLayer(encoding, layer);
  return [OP_MOVE_KV, PASS_KEEP + PASS_MOVES, ...kvOf(attention), record(encoding, attention)];
}

/** contextKeys, contextValues → every layer's KV pages. */
export function encodeContextRope(encoding: Encoding): Instruction[] {
  const buffers = { queries: null, key: "contextKeys", value: "contextValues", out: null } as const;
  return encoding.drafter!.layers.map((_, layer) => {
    const module = `${draftPrefix}layers.${layer}.self_attn`;
    return rope(encoding, { ...draftLayer(encoding, layer), heads: 0 }, module, buffers, layer);
  });
}

/** draftQuery, draftKey, draftValue → draftRotated, and the KV pages. */
export function encodeDraftRope(encoding: Encoding, module: string, layer: number): Instruction {
  const buffers = {
    queries: "draftQuery",
    key: "draftKey",
    value: "draftValue",
    out: "draftRotated",
  } as const;
  return rope(encoding, draftLayer(encoding, layer), module, buffers);
}

/** draftRotated, KV pages → draftAttended. */
export function encodeDraftAttend(encoding: Encoding, layer: number): Instruction {
  return attend(encoding, draftLayer(encoding, layer), "draftRotated", [0, 0], "draftAttended");
}

function targetLayer({ places, shape }: Encoding, layer: number): AttentionLayer {
  const { headCount: heads, rotaryDim } = shape;
  return { kv: places.kv, layer, heads, rotaryDim, queryStep: 2, window: 0, whole: false };
}

function draftLayer({ places, drafter }: Encoding, layer: number): AttentionLayer {
  const { headCount: heads, headDim: rotaryDim, layers } = drafter!;
  const { window, causal } = layers[layer]!;
  const { kv } = places.draft!;
  return { kv, layer, heads, rotaryDim, queryStep: 1, window: window ?? 0, whole: !causal };
}

/** @param part which layer's keys and values it takes of rows that hold those of several */
function rope(
  encoding: Encoding,
  attention: AttentionLayer,
  module: string,
  buffers: { queries: RowBuffer | null; key: RowBuffer; value: RowBuffer; out: RowBuffer | null },
  part = 0,
): Instruction {
  const { tensors } = encoding;
  const { heads, headDim } = attention.kv;
  const at = 4 * part * heads * headDim;
  const [key] = rowOf(encoding, buffers.key);
  const [value, stride] = rowOf(encoding, buffers.value);
  return [
    OP_ROPE,
    encoding.rows,
    ...(buffers.queries ? rowOf(encoding, buffers.queries) : [0, 0]),
    key + at,
    value + at,
    stride,
    buffers.queries ? tensors.vector(`${module}.q_norm`, headDim) : 0,
    tensors.vector(`${module}.k_norm`, headDim),
    floatWord(encoding.normEps),
    ...(buffers.out ? rowOf(encoding, buffers.out) : [0, 0]),
    ...kvOf(attention),
    record(encoding, attention),
  ];
}

function attend(
  encoding: Encoding,
  attention: AttentionLayer,
  query: RowBuffer,
  gates: readonly number[],
  out: RowBuffer,
): Instruction {
  return [
    OP_ATTEND,
    encoding.rows,
    ...rowOf(encoding, query),
    ...gates,
    ...kvOf(attention),
    ...rowOf(encoding, out),
    record(encoding, attention),
  ];
}

const kvOf = ({ kv, layer }: AttentionLayer): number[] => [kv.keys[layer]!, kv.values[layer]!];

/** The attention record of `layout.ts`. */
function record({ arena }: Encoding, attention: AttentionLayer): number {
  const { kv, heads, rotaryDim, queryStep, window, whole } = attention;
  const rules = [queryStep, window, whole ? 1 : 0];
  return arena.placeU32([heads, kv.heads, kv.headDim, rotaryDim, kv.pageBytes, ...rules]);
}
