import { CheckpointError } from "../../errors.ts";
import { shown } from "../../json.ts";
import type { GgufHeader } from "./open.ts";

/** A header's metadata, each value with its type checked. */
export class GgufMetadata {
  readonly #file: string;
  readonly #fields: ReadonlyMap<string, unknown>;

  constructor({ file, metadata }: GgufHeader) {
    this.#file = file;
    this.#fields = metadata;
  }

  /** @throws CheckpointError where it is missing, or no number */
  number(key: string): number {
    return this.optionalNumber(key) ?? this.#missing(key);
  }

  optionalNumber(key: string): number | undefined {
    const value = this.#fields.get(key);
    if (value === undefined) return undefined;
    if (typeof value === "number") return shortest(value);
    if (typeof value === "bigint" && Number.isSafeInteger(Number(value))) return Number(value);
    return this.fail(key, "must be a number", value);
  }

  /** A number, or numbers of layers that are all the same or 0: the layer has none. */
  numberOfLayers(key: string): number {
    const value = this.#fields.get(key);
    if (!Array.isArray(value)) return this.number(key);
    const counts = new Set(value.map(Number).filter((count) => count !== 0));
    const [count] = counts;
    if (counts.size === 1 && count !== undefined) return count;
    return this.fail(key, "must be the same for all layers", value);
  }

  string(key: string): string {
    return this.optionalString(key) ?? this.#missing(key);
  }

  optionalString(key: string): string | undefined {
    const value = this.#fields.get(key);
    if (value === undefined || typeof value === "string") return value;
    return this.fail(key, "must be a string", value);
  }

  strings(key: string): readonly string[] {
    const isString = (each: unknown) => typeof each === "string";
    return this.#list(key, "a list of strings", isString);
  }

  numbers(key: string): readonly number[] {
    const isNumber = (each: unknown) => typeof each === "number";
    return this.#list(key, "a list of numbers", isNumber);
  }

  fail(key: string, rule: string, value: unknown): never {
    throw new CheckpointError(this.#file, `${key}: ${rule}, found ${shown(value)}`);
  }

  #list<T>(key: string, what: string, isEach: (value: unknown) => boolean): readonly T[] {
    const value = this.#fields.get(key) ?? this.#missing(key);
    if (Array.isArray(value) && value.every(isEach)) return value;
    return this.fail(key, `must be ${what}`, value);
  }

  #missing(key: string): never {
    throw new CheckpointError(this.#file, `has no ${key}`);
  }
}

/** The shortest decimal that is the same f32: files hold 1e-6 as 9.999999974752427e-7. */
function shortest(value: number): number {
  const short = Number(value.toPrecision(7));
  return Math.fround(short) === value ? short : value;
}
