import { InvariantError } from "../../errors.ts";

/** Names and the numbers that stand for them in one variant of a kernel. */
export type Defines = Readonly<Record<string, number>>;

/**
 * Specialises a kernel's text. Lines beginning with `#` direct it; everything else is WGSL.
 *
 * - `#include NAME` puts another file in its place;
 * - `#if EXPRESSION` … `#else` … `#end` keeps one side;
 * - `#repeat NAME COUNT` … `#end` repeats the lines with `{NAME}` replaced by 0 … COUNT − 1, which
 *   keeps accumulators in registers where an indexed array would spill;
 * - `{NAME}` is replaced by a define or by the counter of an enclosing repeat; `{NAME+1}`,
 *   `{NAME*OTHER}`, `{NAME/2}` and `{NAME%2}` by the (whole) number that they make. Directives have
 *   them filled in too.
 *
 * Expressions are a name or a number, or two of them with `==`, `<`, `>` or `*` between.
 */
export function preprocess(
  name: string,
  defines: Defines,
  sources: Readonly<Record<string, string>>,
): string {
  const lines = included(name, sources);
  const out: string[] = [];
  expand(lines, 0, lines.length, new Map(Object.entries(defines)), out, name);
  return out.join("\n");
}

function included(name: string, sources: Readonly<Record<string, string>>): string[] {
  const source = sources[name];
  if (source === undefined) throw new InvariantError(`there is no kernel file ${name}`);
  return source.split("\n").flatMap((line) => {
    const [directive, file] = line.trim().split(/\s+/);
    return directive === "#include" ? included(file!, sources) : [line];
  });
}

type Values = ReadonlyMap<string, number>;

function expand(
  lines: readonly string[],
  from: number,
  to: number,
  values: Values,
  out: string[],
  file: string,
): void {
  for (let at = from; at < to; at++) {
    const line = substituted(lines[at]!, values);
    const [directive, ...words] = line.trim().split(/\s+/);
    if (directive === "#if" || directive === "#repeat") {
      const { middle, end } = blockAt(lines, at, to, file);
      if (directive === "#repeat") {
        const count = evaluate(words.slice(1), values, file);
        for (let index = 0; index < count; index++) {
          expand(lines, at + 1, end, new Map([...values, [words[0]!, index]]), out, file);
        }
      } else if (evaluate(words, values, file) !== 0) {
        expand(lines, at + 1, middle ?? end, values, out, file);
      } else if (middle !== null) {
        expand(lines, middle + 1, end, values, out, file);
      }
      at = end;
    } else if (directive?.startsWith("#")) {
      throw new InvariantError(`${file}: stray ${directive} in line ${at + 1}`);
    } else {
      out.push(line);
    }
  }
}

/** The `#else` and `#end` that belong to the block beginning at `at`. */
function blockAt(lines: readonly string[], at: number, to: number, file: string) {
  let depth = 0;
  let middle: number | null = null;
  for (let end = at + 1; end < to; end++) {
    const [directive] = lines[end]!.trim().split(/\s+/);
    if (directive === "#if" || directive === "#repeat") depth++;
    else if (directive === "#else" && depth === 0) middle = end;
    else if (directive === "#end" && depth-- === 0) return { middle, end };
  }
  throw new InvariantError(`${file}: the block of line ${at + 1} has no #end`);
}

function evaluate(words: readonly string[], values: Values, file: string): number {
  const number = (word: string | undefined): number => {
    const value = word === undefined ? undefined : (values.get(word) ?? Number(word));
    if (value === undefined || Number.isNaN(value)) {
      throw new InvariantError(`${file}: ${word} is not defined`);
    }
    return value;
  };
  const [left, operator, right] = words;
  if (operator === undefined) return number(left);
  const operations: Record<string, (a: number, b: number) => number> = {
    "==": (a, b) => Number(a === b),
    "<": (a, b) => Number(a < b),
    ">": (a, b) => Number(a > b),
    "*": (a, b) => a * b,
  };
  const operation = operations[operator];
  if (!operation) throw new InvariantError(`${file}: unknown operator ${operator}`);
  return operation(number(left), number(right));
}

const filledIn: Readonly<Record<string, (a: number, b: number) => number>> = {
  "+": (a, b) => a + b,
  "*": (a, b) => a * b,
  "/": (a, b) => Math.floor(a / b),
  "%": (a, b) => a % b,
};

const placeholder = /\{([A-Za-z_]\w*)(?:([+*/%])(\w+))?\}/g;

const substituted = (line: string, values: Values): string =>
  line.replace(placeholder, (all, name: string, operator?: string, other?: string) => {
    const left = values.get(name);
    if (left === undefined) return all;
    if (operator === undefined) return String(left);
    const right = values.get(other!) ?? Number(other);
    if (Number.isNaN(right)) throw new InvariantError(`${other} in ${all} is not defined`);
    return String(filledIn[operator]!(left, right));
  });
