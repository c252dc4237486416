import { type Expression, nothing, optional, repeat, sequence, text } from "./expressions.ts";
import { countsOf, fail, type SchemaContext, type SchemaRecord } from "./schema-parts.ts";

/**
 * Arrays of a schema.
 * @throws InputError
 */
export function arrayOf(reader: SchemaContext, schema: SchemaRecord, at: string): Expression {
  const { items = true, prefixItems = [] } = schema;
  const { json } = reader;
  if (!Array.isArray(prefixItems)) fail(at, "prefixItems must be a list of schemas");
  if (Array.isArray(items)) fail(at, "items must be a schema: lists of schemas are prefixItems");
  const { least, most } = countsOf(schema, ["minItems", "maxItems"], at);
  const firsts = prefixItems.map((each: unknown, index) =>
    reader.expression({ schema: each, at: `${at}/prefixItems/${index}` }),
  );
  const item = items === false ? nothing : reader.expression({ schema: items, at: `${at}/items` });
  if (most !== null && most < least) return nothing;
  const comma = (element: Expression) => sequence(text(","), json.gap, element);
  const spare = most === null ? null : Math.max(0, most - Math.max(1, firsts.length));
  let rest = repeat(comma(item), Math.max(0, least - Math.max(1, firsts.length)), spare);
  const elements = firsts.length > 0 ? firsts : [item];
  for (const [index, element] of [...elements.entries()].reverse()) {
    if (most !== null && index >= most) rest = text("");
    else {
      const here = sequence(index === 0 ? element : comma(element), rest);
      rest = index >= least ? optional(here) : here;
    }
  }
  return json.bracketed("[", rest, "]");
}
