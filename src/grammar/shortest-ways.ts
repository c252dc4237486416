import { type Instruction, type Program, returnPlace, usersOf } from "./program.ts";

/** How to come from each place of a program to its rule's return with the fewest bytes. */
export interface ShortestWays {
  /** These bytes; Infinity where they are more than was asked for, or where there is no way. */
  readonly bytes: Float64Array;
  /** Where to go on: behind a byte, at a split's place, or at the entry of what is called. */
  readonly nexts: Int32Array;
}

/** @param bytesMax of the ways that are looked for: linear in these and the program's size */
export function shortestWays({ instructions }: Program, bytesMax: number): ShortestWays {
  const bytes = new Float64Array(instructions.length).fill(Number.POSITIVE_INFINITY);
  const nexts = new Int32Array(instructions.length);
  const users = usersOf(instructions, true);
  /** Places by the length of a way that was found; each may be there several times. */
  const found: { place: number; next: number }[][] = [[{ place: returnPlace, next: returnPlace }]];
  for (let length = 0; length <= bytesMax && length < found.length; length++) {
    // More of this length may come while they are looked at.
    for (const { place, next } of found[length] ?? []) {
      if (bytes[place]! <= length) continue;
      bytes[place] = length;
      nexts[place] = next;
      for (const user of users[place]!) {
        const instruction = instructions[user]!;
        const whole = lengthFrom(instruction, length, bytes);
        if (whole > bytesMax || bytes[user]! <= whole) continue;
        found[whole] ??= [];
        found[whole].push({
          place: user,
          next: instruction.kind === "call" ? instruction.entry : place,
        });
      }
    }
  }
  return { bytes, nexts };
}

/** From an instruction on, where it goes on at a place that has a way of this length. */
function lengthFrom(instruction: Instruction, length: number, bytes: Float64Array): number {
  if (instruction.kind === "bytes") return length + 1;
  if (instruction.kind !== "call") return length;
  return bytes[instruction.entry]! + bytes[instruction.next]!;
}
