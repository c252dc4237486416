import { isRecord, ownValue, shown } from "../json.ts";
import type { FormWork } from "./form-work.ts";
import { constraintsOf, fail, type SchemaAt, type SchemaRecord, typeList } from "./schema-parts.ts";

/** Steps to read one schema of several that are joined, and characters of theirs in a step. */
const schemaSteps = 4;
const charsAStep = 16;

/** Follows references, and makes one schema of several that hold together. */
export class SchemaJoiner {
  readonly #root: unknown;
  readonly #work: FormWork;

  /** @param root what references begin in */
  constructor(root: unknown, work: FormWork) {
    this.#root = root;
    this.#work = work;
  }

  /**
   * What a schema refers to, where it says nothing else.
   * @throws InputError
   */
  targetOf({ schema, at }: SchemaAt): SchemaAt | null {
    if (!isRecord(schema) || schema["$ref"] === undefined) return null;
    const { $ref, ...others } = constraintsOf(schema, at);
    return Object.keys(others).length > 0 ? null : this.#resolved($ref, at);
  }

  /**
   * The keywords of a schema and of all that it refers to, without references.
   * @throws InputError
   */
  join(place: SchemaAt): SchemaRecord {
    const { schema } = place;
    if (isRecord(schema) && schema["$ref"] === undefined && schema["allOf"] === undefined) {
      return keywordsOf(place);
    }
    const parts: SchemaRecord[] = [];
    const seen = new Set<unknown>();
    const open = [place];
    for (let next = open.pop(); next; next = open.pop()) {
      if (seen.has(next.schema) || next.schema === true) continue;
      seen.add(next.schema);
      const { $ref, allOf = [], ...own } = keywordsOf(next);
      if (Object.keys(own).length > 0) parts.push(own);
      if (!Array.isArray(allOf)) fail(next.at, "allOf must be a list of schemas");
      for (const [index, schema] of [...allOf.entries()].reverse()) {
        open.push({ schema, at: `${next.at}/allOf/${index}` });
      }
      if ($ref !== undefined) open.push(this.#resolved($ref, next.at));
    }
    this.#work.spend(schemaSteps * seen.size);
    if (parts.length < 2) return parts[0] ?? {};
    this.#work.spend(JSON.stringify(parts).length / charsAStep);
    return mergeParts(parts, place.at);
  }

  #resolved(ref: unknown, at: string): SchemaAt {
    return { schema: resolveRef(this.#root, ref, at), at: String(ref) };
  }
}

function keywordsOf({ schema, at }: SchemaAt): SchemaRecord {
  if (schema === false) return { type: [] };
  if (isRecord(schema)) return constraintsOf(schema, at);
  return fail(at, `a schema must be an object or a flag, not ${shown(schema)}`);
}

/**
 * What a local reference names.
 * @throws InputError where it isn't local, or names nothing
 */
function resolveRef(root: unknown, ref: unknown, at: string): unknown {
  if (typeof ref !== "string" || !/^#($|\/)/.test(ref)) {
    fail(at, `$ref must be local, such as "#/$defs/name", not ${shown(ref)}`);
  }
  let found = root;
  for (const step of ref.split("/").slice(1)) {
    const key = decoded(step).replaceAll("~1", "/").replaceAll("~0", "~");
    if (Array.isArray(found)) found = /^\d+$/.test(key) ? found[Number(key)] : undefined;
    else found = isRecord(found) ? ownValue(found, key) : undefined;
  }
  if (found === undefined) fail(at, `$ref names nothing: ${shown(ref)}`);
  return found;
}

function decoded(step: string): string {
  try {
    return decodeURIComponent(step);
  } catch {
    return step;
  }
}

/**
 * A schema that holds to all of some schemas at once: what stands in one of them stands, bounds are the
 * narrower ones, and properties of one name hold to both.
 * @throws InputError for what has no such schema
 */
function mergeParts(parts: readonly SchemaRecord[], at: string): SchemaRecord {
  closedAgainst(parts, at);
  itemsApart(parts, at);
  const values = new Map<string, unknown[]>();
  for (const [keyword, value] of parts.flatMap((part) => Object.entries(part))) {
    const others = values.get(keyword);
    if (others) others.push(value);
    else values.set(keyword, [value]);
  }
  return Object.fromEntries(
    Array.from(values, ([keyword, all]) => [keyword, joined(keyword, all, at)]),
  );
}

/** A part that takes no other properties than its own would take away those of other parts. */
function closedAgainst(parts: readonly SchemaRecord[], at: string): void {
  const names = (part: SchemaRecord) => Object.keys(propertiesOf(part));
  for (const closed of parts) {
    const { additionalProperties: others = true } = closed;
    const own = new Set(names(closed));
    if (others === true || parts.every((part) => names(part).every((name) => own.has(name))))
      continue;
    fail(at, "additionalProperties can't be together with properties that stand elsewhere");
  }
}

/** Of a part without prefixItems, items hold for all elements, those that others name among them. */
function itemsApart(parts: readonly SchemaRecord[], at: string): void {
  const named = parts.some(({ prefixItems }) => prefixItems !== undefined);
  const bare = parts.some(
    ({ items = true, prefixItems }) => items !== true && prefixItems === undefined,
  );
  if (named && bare) fail(at, "items can't be together with prefixItems that stand elsewhere");
}

const propertiesOf = ({ properties }: SchemaRecord): SchemaRecord =>
  isRecord(properties) ? properties : {};

const narrowest: ReadonlyMap<string, (a: number, b: number) => number> = new Map([
  ...["minimum", "exclusiveMinimum", "minLength", "minItems"].map(
    (key) => [key, Math.max] as const,
  ),
  ...["maximum", "exclusiveMaximum", "maxLength", "maxItems"].map(
    (key) => [key, Math.min] as const,
  ),
]);

function joined(keyword: string, values: readonly unknown[], at: string): unknown {
  if (keyword === "properties" && values.every(isRecord)) return joinedProperties(values);
  if (keyword === "required" && values.every(Array.isArray)) return [...new Set(values.flat())];
  return values.reduce((one, other) => both(keyword, one, other, at));
}

function joinedProperties(values: readonly SchemaRecord[]): SchemaRecord {
  /** By name, its schemas by their text. */
  const all = new Map<string, Map<string, unknown>>();
  for (const [name, schema] of values.flatMap((value) => Object.entries(value))) {
    const schemas = all.get(name) ?? new Map<string, unknown>();
    all.set(name, schemas.set(JSON.stringify(schema), schema));
  }
  return Object.fromEntries(
    Array.from(all, ([name, schemas]) => {
      const some = [...schemas.values()];
      return [name, some.length === 1 ? some[0] : { allOf: some }];
    }),
  );
}

function both(keyword: string, one: unknown, other: unknown, at: string): unknown {
  if (JSON.stringify(one) === JSON.stringify(other)) return one;
  const narrower = narrowest.get(keyword);
  if (narrower && typeof one === "number" && typeof other === "number") return narrower(one, other);
  if (keyword === "type") return commonTypes(one, other);
  if (keyword === "additionalProperties") {
    if (one === true || other === false) return other;
    if (other === true || one === false) return one;
  }
  fail(at, `${shown(keyword)} is given in two ways that can't be put together`);
}

function commonTypes(one: unknown, other: unknown): unknown[] {
  const [types, others] = [typeList(one), typeList(other)];
  return types.flatMap((type) => {
    if (others.includes(type)) return [type];
    if (type === "number" && others.includes("integer")) return ["integer"];
    return type === "integer" && others.includes("number") ? [type] : [];
  });
}
