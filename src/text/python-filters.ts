import { pythonJson, pythonText, withoutStandIns } from "./python-print.ts";
import { pythonStrip } from "./python-strip.ts";

/**
 * What Jinja templates are written for is Python, and the template engine does some things as
 * JavaScript does; either would render other tokens than the model was trained on. So the parsed
 * template is rewritten: `x | trim`, `x.strip(…)`, `x | tojson` and `x | string` become calls of the
 * functions below.
 */
export const pythonFunctions: Readonly<Record<string, unknown>> = {
  __python_strip: (value: unknown, characters: unknown) => pythonStrip(value, characters, "strip"),
  __python_lstrip: (value: unknown, characters: unknown) =>
    pythonStrip(value, characters, "lstrip"),
  __python_rstrip: (value: unknown, characters: unknown) =>
    pythonStrip(value, characters, "rstrip"),
  __python_json: pythonJson,
  __python_text: pythonText,
  __python_plain: withoutStandIns,
};

const methods: ReadonlySet<string> = new Set(["strip", "lstrip", "rstrip"]);

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

function call(name: string, args: readonly unknown[]): SyntaxNode {
  const callee = { type: "Identifier", value: `__python_${name}` };
  return { type: "CallExpression", callee, args };
}

/** What stands for `node` instead, or null where it may stay. */
function replacement(node: SyntaxNode): SyntaxNode | null {
  if (node.type === "FilterExpression") return filterReplacement(node);
  if (node.type !== "CallExpression" || !isNode(node.callee)) return null;
  const { type, computed, object, property } = node.callee;
  const method = nameOf(property);
  if (type !== "MemberExpression" || computed === true || method === null) return null;
  const args = Array.isArray(node.args) ? node.args : [];
  return methods.has(method) ? call(method, [object, ...args]) : null;
}

function filterReplacement({ type, operand, filter }: SyntaxNode): SyntaxNode | null {
  const name = nameOf(filter);
  if (name === "trim") return call("strip", [operand]);
  if (name === "tojson") return call("json", [operand]);
  if (name === "string") {
    // Functions are given undefined for none too.
    const test = { type: "Identifier", value: "none" };
    return call("text", [operand, { type: "TestExpression", operand, negate: false, test }]);
  }
  // With options, tojson is the engine's own.
  const called = isNode(filter) && filter.type === "CallExpression" ? nameOf(filter.callee) : null;
  return called === "tojson" ? { type, operand: call("plain", [operand]), filter } : null;
}

/** Replaces below `node` in place; gives what should stand in its own place. */
export function rewriteForPython(node: unknown): unknown {
  if (!isNode(node)) return node;
  if (node instanceof Map) {
    for (const [key, value] of node) node.set(key, rewriteForPython(value));
    return node;
  }
  const target = replacement(node) ?? node;
  for (const [key, value] of Object.entries(target)) {
    Reflect.set(target, key, rewriteForPython(value));
  }
  return target;
}
