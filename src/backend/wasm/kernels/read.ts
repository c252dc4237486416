// READ: reads memory and does nothing with it, to find out how fast that goes.
import { nextUnit, share } from "./sync";

/** Bytes of a unit. */
const RUN: usize = 1 << 20;

/** READ. Leaves an exclusive or of all words in the thread's scratch. Operands: address, bytes. Unit = 1 MiB. */
export function read(op: usize, scratch: usize): void {
  const from = load<u32>(op, 8) as usize;
  const runs = ((load<u32>(op, 12) as usize) / RUN) as i32;
  let a = i32x4.splat(0);
  let b = a;
  let c = a;
  let d = a;
  share(runs);
  for (let unit = nextUnit(); unit >= 0; unit = nextUnit()) {
    const begin = from + (unit as usize) * RUN;
    const end = begin + RUN;
    for (let at = begin; at < end; at += 64) {
      a = v128.xor(a, v128.load(at));
      b = v128.xor(b, v128.load(at, 16));
      c = v128.xor(c, v128.load(at, 32));
      d = v128.xor(d, v128.load(at, 48));
    }
  }
  v128.store(scratch, v128.xor(v128.xor(a, b), v128.xor(c, d)));
}
