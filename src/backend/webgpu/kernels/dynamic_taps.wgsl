// Included by what convolves a drafter's rows (docs/drafters.md): what a row is multiplied by, of four channels from
// 4 · quad on. Tap 0 is of the row itself, 1 of the one before it: the kernel's own plus what the row's
// projection made of it for the quad's group, [side, tap, group], in {KERNEL_SLICES} slices.
// params from {KERNEL_PARAMS} on: side, stride of a row's kernels, floats from slice to slice, quads a group
fn tapOf(row: u32, tap: u32, quad: u32, quads: u32) -> vec4<f32> {
  let index = 2u * param({KERNEL_PARAMS}u) + tap;
  let group = param({KERNEL_PARAMS+3}u);
  let at = row * param({KERNEL_PARAMS+1}u) + index * (quads / group) + quad / group;
  var delta = kernels[at];
#repeat s KERNEL_SLICES
#if s > 0
  delta += kernels[at + {s}u * param({KERNEL_PARAMS+2}u)];
#end
#end
  return base[index * quads + quad] + vec4<f32>(delta);
}
