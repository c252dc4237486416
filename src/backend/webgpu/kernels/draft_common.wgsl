// What a drafter's attention shares: which keys the rows of a block see, and how they are cut. A block's row r stands at
// start + r and sees the context's keys that lie less than `window` before it (0: all), then those of the
// block: all, or (causal) up to its own. Tiles of {PAGE_ROWS} keys of what its first row sees go to {SPLITS} parts at most.
struct Keys { start: u32, end: u32, first: u32, tiles: u32, span: u32 }

fn firstSeen(start: u32, row: u32, window: u32) -> u32 {
  let position = start + row;
  if (window == 0u || position < window) { return 0u; }
  return min(position + 1u - window, start);
}
fn keysOf(segment: u32, window: u32) -> Keys {
  let start = rowPosition(segmentWord(segment, 0u));
  let end = start + segmentWord(segment, 1u);
  let first = firstSeen(start, 0u, window);
  let tiles = (end + {PAGE_ROWS}u - 1u) / {PAGE_ROWS}u - first / {PAGE_ROWS}u;
  return Keys(start, end, first, tiles, (tiles + {SPLITS}u - 1u) / {SPLITS}u);
}
