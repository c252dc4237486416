/** What instructions do. */
export const ops = {
  /** Comes back from a rule. */
  return: 0,
  /** Reads a byte, and goes on where the byte's range says. The ranges are disjoint. */
  read: 1,
  /** Goes on at any of its targets. */
  split: 2,
  /** Goes through a rule, from its first target to a return, then on at its second. */
  call: 3,
} as const;

/** Instructions over bytes, which name others by their places. */
export interface Instructions {
  /** By place, what it does. */
  readonly ops: Uint8Array;
  /** By place, where its targets begin, which end where those of the next place begin. */
  readonly starts: Int32Array;
  readonly targets: Int32Array;
  /** By target, the bytes from the first to the last with which a read goes on there. */
  readonly firsts: Uint8Array;
  readonly lasts: Uint8Array;
}

/** A grammar's rules, as instructions. */
export interface Program extends Instructions {
  /** The entry of the first rule. */
  readonly start: number;
  /** By place, 1 where a return can be reached from: anywhere else nobody should go. */
  readonly live: Uint8Array;
  /** By place, 1 where a return can be reached from without reading. */
  readonly empty: Uint8Array;
  /** For each place one that reads the same tokens: of the copies of a long repeat, the first such. */
  readonly alike: Int32Array;
}

/** Where a rule ends. */
export const returnPlace = 0;

/** For each place those that name it, ascending. */
export interface Users {
  /** By place, where its users begin, which end where those of the next place begin. */
  readonly starts: Int32Array;
  readonly places: Int32Array;
}

export function usersOf({ ops: each, starts, targets }: Instructions): Users {
  const userStarts = new Int32Array(each.length + 1);
  for (const target of targets) userStarts[target + 1]!++;
  for (let place = 0; place < each.length; place++) userStarts[place + 1]! += userStarts[place]!;
  const ends = userStarts.slice();
  const places = new Int32Array(targets.length);
  for (let place = 0; place < each.length; place++) {
    for (let at = starts[place]!; at < starts[place + 1]!; at++) {
      places[ends[targets[at]!]!++] = place;
    }
  }
  return { starts: userStarts, places };
}

/** Which instructions can come to a return, as ones. @param reads whether they may read on the way */
export function reachesReturn(program: Instructions, users: Users, reads: boolean): Uint8Array {
  const reaches = new Uint8Array(program.ops.length);
  const open = [returnPlace];
  reaches[returnPlace] = 1;
  for (let place = open.pop(); place !== undefined; place = open.pop()) {
    for (let at = users.starts[place]!; at < users.starts[place + 1]!; at++) {
      const user = users.places[at]!;
      if (reaches[user] === 1 || !leads(program, user, reads, reaches)) continue;
      reaches[user] = 1;
      open.push(user);
    }
  }
  return reaches;
}

/** Whether an instruction comes to a return, one of whose targets does. */
function leads(program: Instructions, place: number, reads: boolean, reaches: Uint8Array): boolean {
  const op = program.ops[place]!;
  if (op === ops.read) return reads;
  if (op !== ops.call) return true;
  const at = program.starts[place]!;
  return reaches[program.targets[at]!] === 1 && reaches[program.targets[at + 1]!] === 1;
}

/** For each byte its class: the program goes on alike with all bytes of one. */
export function byteClasses(program: Instructions): { classes: Uint8Array; count: number } {
  const begins = new Uint8Array(257);
  for (let place = 0; place < program.ops.length; place++) {
    if (program.ops[place] !== ops.read) continue;
    for (let at = program.starts[place]!; at < program.starts[place + 1]!; at++) {
      begins[program.firsts[at]!] = 1;
      begins[program.lasts[at]! + 1] = 1;
    }
  }
  const classes = new Uint8Array(256);
  let latest = 0;
  for (let byte = 1; byte < 256; byte++) classes[byte] = begins[byte] ? ++latest : latest;
  return { classes, count: latest + 1 };
}
