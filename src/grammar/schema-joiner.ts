import { isRecord, ownValue, shown } from "../json.ts";
import { joinedSchemaCharsMax } from "../limits.ts";
import { constraintsOf, fail, type SchemaAt, type SchemaRecord, typeList } from "./schema-parts.ts";

/** What a schema costs beside its text. */
const schemaChars = 64;

/** Follows references, and makes one schema of several that hold together. */
export class SchemaJoiner {
  readonly #root: unknown;
  /** Characters of all schemas that were joined: references may ask for any number of them. */
  #joinedChars = 0;

  /** @param root what references begin in */
  constructor(root: unknown) {
    this.#root = root;
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
    if (seen.size > 1) this.#count(schemaChars * seen.size, place.at);
    if (parts.length < 2) return parts[0] ?? {};
    this.#count(JSON.stringify(parts).length, place.at);
    return mergeParts(parts, place.at);
  }

  #resolved(ref: unknown, at: string): SchemaAt {
    return { schema: resolveRef(this.#root, ref, at), at: String(ref) };
  }

  #count(chars: number, at: string): void {
    this.#joinedChars += chars;
    if (this.#joinedChars <= joinedSchemaCharsMax) return;
    fail(at, "references and allOf put more schemas together than can be followed");
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
  const merged = new Map<string, unknown>();
  for (const [keyword, value] of parts.flatMap((part) => Object.entries(part))) {
    const before = merged.get(keyword);
    merged.set(keyword, before === undefined ? value : both(keyword, before, value, at));
  }
  return Object.fromEntries(merged);
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

function both(keyword: string, one: unknown, other: unknown, at: string): unknown {
  if (JSON.stringify(one) === JSON.stringify(other)) return one;
  const narrower = narrowest.get(keyword);
  if (narrower && typeof one === "number" && typeof other === "number") return narrower(one, other);
  if (keyword === "required" && Array.isArray(one) && Array.isArray(other)) {
    return [...new Set([...one, ...other])];
  }
  if (keyword === "type") return commonTypes(one, other);
  if (keyword === "properties" && isRecord(one) && isRecord(other)) {
    const all = new Map(Object.entries(one));
    for (const [name, schema] of Object.entries(other)) {
      all.set(name, all.has(name) ? { allOf: [all.get(name), schema] } : schema);
    }
    return Object.fromEntries(all);
  }
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
