import { createHash } from "node:crypto";
import { MemorySpillFiles } from "../../state/memory-spill-files.cases.ts";
import type { NewHash } from "../../state/spill-file.ts";
import type { Random } from "./random.cases.ts";
import type { DiskScenario } from "./scenario.cases.ts";
import type { VirtualTime } from "./virtual-time.cases.ts";

/** A disk that takes virtual time, and fails now and then. */
export class Disk extends MemorySpillFiles {
  override readonly newHash: NewHash = () => createHash("sha256");
  readonly #time: VirtualTime;
  readonly #random: Random;
  readonly #scenario: DiskScenario;
  reads = 0;

  constructor(time: VirtualTime, random: Random, scenario: DiskScenario) {
    super();
    this.#time = time;
    this.#random = random;
    this.#scenario = scenario;
  }

  override async list(): Promise<{ name: string; bytes: number }[]> {
    await this.#turn();
    return await super.list();
  }

  override async read(name: string, bytesMax?: number): Promise<Uint8Array | null> {
    await this.#turn();
    this.reads++;
    this.flippedBit = this.#fault() ? this.#random.below(8_000) : null;
    return await super.read(name, bytesMax);
  }

  override async write(name: string, parts: Iterable<Uint8Array>): Promise<void> {
    await this.#turn();
    this.tornAt = this.#fault() ? this.#random.below(500) : null;
    await super.write(name, parts);
  }

  override async touch(name: string): Promise<void> {
    await this.#turn();
    await super.touch(name);
  }

  override async remove(name: string): Promise<void> {
    await this.#turn();
    await super.remove(name);
  }

  async #turn(): Promise<void> {
    await this.#time.until(this.#time.nowMs() + this.#scenario.callMs);
    if (this.#fault()) throw new Error("planted: the disk");
  }

  #fault(): boolean {
    const { faultOnceIn } = this.#scenario;
    return faultOnceIn > 0 && this.#random.once(faultOnceIn);
  }
}
