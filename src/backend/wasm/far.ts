import { invariant } from "../../errors.ts";
import { Arena, arenaBytesMax } from "./arena.ts";
import {
  ARENA_START,
  BLOCK_ROWS,
  FAR_BLOCKS,
  MATRIX_BYTES,
  READ_AHEAD,
  ROW_TILE,
} from "./layout.ts";

/** A thread's places in a far memory: the record of a matrix, activations, and what they make. */
export interface FarPlaces {
  readonly record: number;
  readonly scratch: number;
  readonly out: number;
}

/** A memory that holds nothing but matrices, and what threads need to multiply by them. */
export interface FarMemory {
  readonly arena: Arena;
  readonly threads: readonly FarPlaces[];
}

/** Behind the last weights of a memory (kernels/read-ahead.ts). */
const readAheadBytes = 2 * READ_AHEAD;
/** Vectors, records and instructions that the near memory gets after it is full of matrices, at most this part. */
const reservedPart = 1 / 64;

/**
 * The memories of a model that is larger than one WebAssembly memory. The near one has everything but the
 * matrices for which it has no room. A thread has an instance of the kernels over each; instructions run in
 * the near one, and have units that need a far matrix computed by its memory's instance (worker-far.ts).
 */
export class WeightMemories {
  readonly far: FarMemory[] = [];
  /** Bytes of matrices in far memories. */
  farBytes = 0;
  readonly #near: Arena;
  readonly #threads: number;
  readonly #scratchBytes: number;
  readonly #bytesMax: number;

  /** @param bytesMax what a memory may hold */
  constructor(
    near: Arena,
    threads: number,
    scratchBytes: number,
    bytesMax: number = arenaBytesMax,
  ) {
    this.#near = near;
    this.#threads = threads;
    this.#scratchBytes = scratchBytes;
    this.#bytesMax = bytesMax;
  }

  /** The arena for so many bytes of a matrix, and its number: 0 the near one. */
  arenaFor(bytes: number): readonly [arena: Arena, far: number] {
    if (this.#near.bytes + bytes <= this.#bytesMax * (1 - reservedPart)) return [this.#near, 0];
    const last = this.far.at(-1);
    this.farBytes += bytes;
    const most = this.#bytesMax - readAheadBytes;
    if (last && last.arena.bytes + bytes <= most) return [last.arena, this.far.length];
    const next = this.#open();
    invariant(next.arena.bytes + bytes <= arenaBytesMax - readAheadBytes, "a matrix fits a memory");
    this.far.push(next);
    return [next.arena, this.far.length];
  }

  /** Ends the placing. Returns all arenas, the near one first. */
  close(): readonly Arena[] {
    const arenas = [this.#near, ...this.far.map(({ arena }) => arena)];
    for (const arena of arenas) arena.place(readAheadBytes);
    return arenas;
  }

  #open(): FarMemory {
    const arena = new Arena(ARENA_START);
    const outBytes = 4 * ROW_TILE * BLOCK_ROWS * FAR_BLOCKS;
    const threads = Array.from({ length: this.#threads }, () => ({
      record: arena.place(MATRIX_BYTES),
      scratch: arena.place(this.#scratchBytes),
      // A row of an embedding, too, which is no wider than an input.
      out: arena.place(Math.max(outBytes, this.#scratchBytes)),
    }));
    return { arena, threads };
  }
}
