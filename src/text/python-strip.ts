/**
 * Python's str.strip inside Jinja templates. The template engine trims with JavaScript's, which
 * differs in U+001C–1F, U+0085 and U+FEFF, and it ignores the characters given to rstrip("\n");
 * either would render other tokens than the model was trained on. So the parsed template is
 * rewritten: `x | trim` and `x.strip(…)` become calls of the functions below.
 */
const whitespace =
  "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007" +
  "\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000";

/** Which ends of the text are stripped. */
type Side = "strip" | "lstrip" | "rstrip";
const sides: ReadonlySet<string> = new Set<Side>(["strip", "lstrip", "rstrip"]);

function pythonStrip(value: unknown, characters: unknown, side: Side): string {
  const text = value === undefined ? "" : String(value);
  const units = typeof characters === "string" ? characters : whitespace;
  let start = 0;
  let end = text.length;
  if (side !== "rstrip") while (start < end && units.includes(text[start]!)) start++;
  if (side !== "lstrip") while (end > start && units.includes(text[end - 1]!)) end--;
  return text.slice(start, end);
}

/** What a rewritten template calls, by the names that no template would use itself. */
export const stripFunctions: Readonly<Record<string, unknown>> = {
  __python_strip: (value: unknown, characters: unknown) => pythonStrip(value, characters, "strip"),
  __python_lstrip: (value: unknown, characters: unknown) =>
    pythonStrip(value, characters, "lstrip"),
  __python_rstrip: (value: unknown, characters: unknown) =>
    pythonStrip(value, characters, "rstrip"),
};

/** A node of the template's syntax tree, as far as the rewriting looks into it. */
interface SyntaxNode {
  readonly type?: unknown;
  readonly value?: unknown;
  readonly operand?: unknown;
  readonly filter?: unknown;
  readonly callee?: unknown;
  readonly args?: unknown;
  readonly object?: unknown;
  readonly property?: unknown;
  readonly computed?: unknown;
}

function isNode(value: unknown): value is SyntaxNode {
  return typeof value === "object" && value !== null;
}

function nameOf(value: unknown): string | null {
  if (!isNode(value) || value.type !== "Identifier") return null;
  return typeof value.value === "string" ? value.value : null;
}

function call(side: string, args: readonly unknown[]): SyntaxNode {
  const callee = { type: "Identifier", value: `__python_${side}` };
  return { type: "CallExpression", callee, args };
}

/** The call that stands for a strip, or null where `node` is none. */
function replacement(node: SyntaxNode): SyntaxNode | null {
  if (node.type === "FilterExpression") {
    return nameOf(node.filter) === "trim" ? call("strip", [node.operand]) : null;
  }
  if (node.type !== "CallExpression" || !isNode(node.callee)) return null;
  const { type, computed, object, property } = node.callee;
  const side = nameOf(property);
  if (type !== "MemberExpression" || computed === true || side === null) return null;
  const args = Array.isArray(node.args) ? node.args : [];
  return sides.has(side) ? call(side, [object, ...args]) : null;
}

/** Replaces every strip below `node` in place; gives what should stand in its own place. */
export function rewriteStrips(node: unknown): unknown {
  if (!isNode(node)) return node;
  if (node instanceof Map) {
    for (const [key, value] of node) node.set(key, rewriteStrips(value));
    return node;
  }
  const target = replacement(node) ?? node;
  for (const [key, value] of Object.entries(target)) {
    Reflect.set(target, key, rewriteStrips(value));
  }
  return target;
}
