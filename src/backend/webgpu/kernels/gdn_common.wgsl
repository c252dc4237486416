// What the kernels of Gated DeltaNet share. Everything is counted in vectors of four channels ("quads").
const keyQuads = {KEY_DIM}u / 4u;
const valueQuads = {VALUE_DIM}u / 4u;
// Of one row and value head: its query, key and value.
const items = 2u * keyQuads + valueQuads;
const channels = 2u * {KEY_HEADS}u * keyQuads + {VALUE_HEADS}u * valueQuads;
const stateQuads = {VALUE_HEADS}u * {KEY_DIM}u * valueQuads;
// Raw rows that the convolution looks back.
const depth = {TAPS}u - 1u;
const headsPerKey = {VALUE_HEADS}u / {KEY_HEADS}u;
// A row of a window's log: g of each value head, δ, keys after the convolution, raw q, k and v.
const logDeltas = {VALUE_HEADS}u;
const logKeys = logDeltas + {VALUE_HEADS}u * valueQuads;
const logRaw = logKeys + {KEY_HEADS}u * keyQuads;
const logQuads = logRaw + channels;

// The first log row of a slot.
fn logOf(slot: u32) -> u32 { return slot * {WINDOW_ROWS}u * logQuads; }

// Where item `item` of a value head stands among a row's channels.
fn channelOf(item: u32, head: u32) -> u32 {
  let keyHead = head / headsPerKey;
  if (item < keyQuads) { return keyHead * keyQuads + item; }
  if (item < 2u * keyQuads) { return ({KEY_HEADS}u + keyHead) * keyQuads + item - keyQuads; }
  return 2u * {KEY_HEADS}u * keyQuads + head * valueQuads + item - 2u * keyQuads;
}

// Value heads share their key head's channels; the first of them writes what is written of those.
fn owns(item: u32, head: u32) -> bool { return item >= 2u * keyQuads || head % headsPerKey == 0u; }
