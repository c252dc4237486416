import type { EventEmitter } from "node:events";
import type { SetAlarm } from "../../clock.ts";
import { messageOf } from "../../errors.ts";
import { ApiKeys, type NamedKey } from "../../serve/keys.ts";
import { keyVariable } from "./environment.ts";
import { fileStamp, readKeyFile } from "./key-file.ts";
import type { AccessFlags } from "./options.ts";

/** How often the file is looked at. */
const lookMs = 500;

/** What a ring of keys needs of its surroundings. */
export interface KeyRingParts {
  /** Emits SIGHUP. */
  readonly signals: EventEmitter;
  readonly setAlarm: SetAlarm;
  /** Hears, in a line, that the file was read again. */
  readonly note: (line: string) => void;
  /** Hears, in a line, that it could not be. */
  readonly warn: (line: string) => void;
}

/** The keys of the flags and of the file, as that is now. */
export class KeyRing implements Disposable {
  /** Null where neither names one. */
  readonly keys: ApiKeys | null;
  readonly #named: readonly NamedKey[];
  readonly #file: string | null;
  readonly #parts: KeyRingParts;
  #stamp = "";
  #stopAlarm = () => {};

  /** @throws InputError for a key or file that isn't one */
  constructor(flags: KeyFlags, parts: KeyRingParts) {
    const { apiKey = [], apiKeyInVariable = false, apiKeyFile } = flags;
    const labelOf = (index: number) => (apiKeyInVariable ? keyVariable : `key-${index + 1}`);
    this.#named = apiKey.map((key, index) => ({ label: labelOf(index), key }));
    this.#file = apiKeyFile ?? null;
    this.#parts = parts;
    this.keys = apiKey.length > 0 || this.#file !== null ? new ApiKeys(this.#read()) : null;
    if (this.#file === null) return;
    parts.signals.on("SIGHUP", this.#again);
    this.#watch();
  }

  [Symbol.dispose](): void {
    this.#stopAlarm();
    this.#parts.signals.off("SIGHUP", this.#again);
  }

  #read(): NamedKey[] {
    if (this.#file === null) return [...this.#named];
    // Before it is read: what is written meanwhile is a change.
    this.#stamp = fileStamp(this.#file);
    return [...this.#named, ...readKeyFile(this.#file)];
  }

  #watch(): void {
    this.#stopAlarm = this.#parts.setAlarm(lookMs, () => {
      if (fileStamp(this.#file!) !== this.#stamp) this.#again();
      this.#watch();
    });
  }

  readonly #again = (): void => {
    try {
      this.keys!.replace(this.#read());
      this.#parts.note(`The keys of ${this.#file} were read again.`);
    } catch (error) {
      const why = messageOf(error);
      this.#parts.warn(`The keys stay as they were. ${why}`);
    }
  };
}

type KeyFlags = Pick<AccessFlags, "apiKey" | "apiKeyInVariable" | "apiKeyFile">;
