// Entry points of the kernel module. One instance a thread, all over one shared memory.
import {
  INSTRUCTION_BYTES,
  OP_ATTEND,
  OP_CONV,
  OP_DYNAMIC_CONV,
  OP_EMBED,
  OP_FEATURE,
  OP_GATED_NORM,
  OP_GATHER,
  OP_KEEP,
  OP_MOVE_FEATURES,
  OP_MOVE_KV,
  OP_NORM,
  OP_PROJECT,
  OP_READ,
  OP_ROPE,
  OP_SCAN,
  OP_SWIGLU,
  OP_TAP,
  PASS_BYTES,
  PASS_DRAWS,
  PASS_DRAW_ROWS,
  PASS_IDS,
  STEP_BYTES,
  UNIT_BITS,
} from "../layout";
import { attend, rope } from "./attention";
import { conv } from "./conv";
import { dynamicConv } from "./dynamic-conv";
import { features } from "./features";
import { keep } from "./keep";
import { writeConstants } from "./math";
import { moveFeatures, moveKv } from "./move";
import { embed, gatedNorm, norm, swiglu, tap } from "./norm";
import { project } from "./project";
import { read } from "./read";
import { scan } from "./scan";
import { enterStep, leaveStep, nextUnit, share } from "./sync";

export { useWide } from "./dots";
export { embedRow } from "./norm";
export { probeDot, probeExp, probeMadd, probeSpeed } from "./probe";
export { multiply } from "./project";

/**
 * Runs `count` instructions at `program` over the pass blocks at `pass`, pass number `generation`, as one of
 * `threads` threads. Word 0 of an instruction is its op, word 1 the place in its kind's block of the count of
 * what it runs over: rows, draws, or windows to commit. Where that is zero the instruction is none of the
 * pass's. `counters` has those of each step, and of one more behind the last.
 * Returns 1 in the one thread that is to report the end of the pass.
 */
export function run(
  program: usize,
  count: i32,
  pass: usize,
  scratch: usize,
  threads: i32,
  counters: usize,
  generation: i32,
): i32 {
  const base = generation << UNIT_BITS;
  writeConstants();
  for (let i: i32 = 0; i < count; i++) {
    enterStep(counters + (i as usize) * STEP_BYTES, base);
    const op = program + (i as usize) * INSTRUCTION_BYTES;
    const counted = load<u32>(op, 4) as usize;
    const rows = load<i32>(pass + counted);
    const within = counted % PASS_BYTES;
    if (rows > 0) execute(op, pass + counted - within, rows, within == PASS_DRAWS, scratch, threads);
    leaveStep();
  }
  enterStep(counters + (count as usize) * STEP_BYTES, base);
  share(1);
  return nextUnit() + 1;
}

function execute(
  op: usize,
  pass: usize,
  rows: i32,
  draws: bool,
  scratch: usize,
  threads: i32,
): void {
  switch (load<i32>(op)) {
    case OP_EMBED:
      embed(op, rows, load<u32>(pass, PASS_IDS) as usize);
      break;
    case OP_NORM:
      norm(op, rows, draws ? (load<u32>(pass, PASS_DRAW_ROWS) as usize) : 0);
      break;
    case OP_PROJECT:
      project(op, rows, scratch, threads);
      break;
    case OP_CONV:
      conv(op, pass, rows);
      break;
    case OP_SCAN:
      scan(op, pass, scratch, threads);
      break;
    case OP_GATED_NORM:
      gatedNorm(op, rows);
      break;
    case OP_ROPE:
      rope(op, pass, rows);
      break;
    case OP_ATTEND:
      attend(op, pass, rows, scratch);
      break;
    case OP_SWIGLU:
      swiglu(op, rows);
      break;
    case OP_TAP:
      tap(op, rows);
      break;
    case OP_KEEP:
      keep(op, pass, rows, threads);
      break;
    case OP_MOVE_KV:
      moveKv(op, pass);
      break;
    case OP_MOVE_FEATURES:
      moveFeatures(op, pass);
      break;
    case OP_FEATURE:
      features(op, pass, rows, false);
      break;
    case OP_GATHER:
      features(op, pass, rows, true);
      break;
    case OP_DYNAMIC_CONV:
      dynamicConv(op, pass, rows);
      break;
    case OP_READ:
      read(op, scratch);
      break;
  }
}
