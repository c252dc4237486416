/** Where a program goes on with a byte from the first to the last. */
export interface ByteEdge {
  readonly first: number;
  readonly last: number;
  readonly next: number;
}

/** An instruction names others by their places in the program. */
export type Instruction =
  /** Reads a byte. The edges' ranges are disjoint. */
  | { readonly kind: "bytes"; readonly edges: readonly ByteEdge[] }
  /** Goes on at any of these. */
  | { readonly kind: "split"; readonly nexts: readonly number[] }
  /** Goes through a rule, from its entry to a return, then on. */
  | { readonly kind: "call"; readonly entry: number; readonly next: number }
  | { readonly kind: "return" };

/** A grammar's rules, as instructions over bytes. */
export interface Program {
  readonly instructions: readonly Instruction[];
  /** The entry of the first rule. */
  readonly start: number;
  /** Where a return can be reached from: anywhere else nobody should go. */
  readonly live: readonly boolean[];
  /** Where a return can be reached from without reading. */
  readonly empty: readonly boolean[];
  /** For each place one that reads the same tokens: of the copies of a long repeat, the first such. */
  readonly alike: readonly number[];
}

/** Where a rule ends. */
export const returnPlace = 0;

/** Which instructions can come to a return. @param reads whether they may read bytes on the way */
export function reachesReturn(instructions: readonly Instruction[], reads: boolean): boolean[] {
  const users = usersOf(instructions, reads);
  const reaches: boolean[] = instructions.map(() => false);
  const open = [returnPlace];
  reaches[returnPlace] = true;
  for (let place = open.pop(); place !== undefined; place = open.pop()) {
    for (const user of users[place]!) {
      const instruction = instructions[user]!;
      const both =
        instruction.kind !== "call" || (reaches[instruction.entry]! && reaches[instruction.next]!);
      if (reaches[user] || !both) continue;
      reaches[user] = true;
      open.push(user);
    }
  }
  return reaches;
}

/** For each place those that name it. @param reads whether behind bytes, too */
export function usersOf(instructions: readonly Instruction[], reads: boolean): number[][] {
  const users: number[][] = instructions.map(() => []);
  instructions.forEach((instruction, place) => {
    for (const next of nextsOf(instruction, reads)) users[next]!.push(place);
  });
  return users;
}

function nextsOf(instruction: Instruction, reads: boolean): readonly number[] {
  switch (instruction.kind) {
    case "bytes":
      return reads ? instruction.edges.map(({ next }) => next) : [];
    case "split":
      return instruction.nexts;
    case "call":
      return [instruction.entry, instruction.next];
    case "return":
      return [];
  }
}

/** For each byte its class: the program goes on alike with all bytes of one. */
export function byteClasses({ instructions }: Program): { classes: Uint8Array; count: number } {
  const begins = new Uint8Array(257);
  for (const instruction of instructions) {
    if (instruction.kind !== "bytes") continue;
    for (const { first, last } of instruction.edges) {
      begins[first] = 1;
      begins[last + 1] = 1;
    }
  }
  const classes = new Uint8Array(256);
  let latest = 0;
  for (let byte = 1; byte < 256; byte++) classes[byte] = begins[byte] ? ++latest : latest;
  return { classes, count: latest + 1 };
}
