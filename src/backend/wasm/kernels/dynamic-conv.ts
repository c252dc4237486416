// DFlash2's convolution over two rows, whose kernels come from the row itself.
import { SEGMENT_FIRST_ROW } from "../layout";
import { madd } from "./math";
import { segmentOf } from "./segment";
import { nextUnit, share } from "./sync";

/** Floats of a unit. */
const RUN: i32 = 256;

/**
 * DYNAMIC_CONV. out[i, c] (+)= (base[0, c] + Δ[i, 0, γ])·x[i, c] + (base[1, c] + Δ[i, 1, γ])·x[i − 1, c],
 * γ = ⌊c / group⌋; the first product is rounded, the second is added by madd. A segment's first row has no
 * second.
 * Unit = (row, run of channels). Operands: x, stride, Δ [row, tap, group], stride, base [tap, channel],
 * channels, group, out, out stride, accumulate.
 */
export function dynamicConv(op: usize, pass: usize, rows: i32): void {
  const channels = load<i32>(op, 28);
  const group = load<i32>(op, 32);
  const base = load<u32>(op, 24) as usize;
  const baseBytes = (channels as usize) << 2;
  const groupsBytes = ((channels / group) as usize) << 2;
  const stride = load<u32>(op, 12) as usize;
  const accumulate = load<i32>(op, 44) != 0;
  const runs = (channels + RUN - 1) / RUN;
  share(rows * runs);
  for (let unit = nextUnit(); unit >= 0; unit = nextUnit()) {
    const row = unit / runs;
    const begin = (unit % runs) * RUN;
    const end = min(channels, begin + RUN);
    const x = (load<u32>(op, 8) as usize) + (row as usize) * stride;
    const kernels = (load<u32>(op, 16) as usize) + (row as usize) * (load<u32>(op, 20) as usize);
    const out = (load<u32>(op, 36) as usize) + (row as usize) * (load<u32>(op, 40) as usize);
    const first = load<i32>(segmentOf(pass, row), SEGMENT_FIRST_ROW) == row;
    for (let c = begin; c < end; c += 4) {
      const at = (c as usize) << 2;
      const own = kernels + (((c / group) as usize) << 2);
      const current = f32x4.add(v128.load(base + at), v128.load32_splat(own));
      let y = f32x4.mul(current, v128.load(x + at));
      if (!first) {
        const delta = v128.load32_splat(own + groupsBytes);
        const previous = f32x4.add(v128.load(base + baseBytes + at), delta);
        y = madd(previous, v128.load(x - stride + at), y);
      }
      v128.store(out + at, accumulate ? f32x4.add(v128.load(out + at), y) : y);
    }
  }
}
