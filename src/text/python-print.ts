/**
 * How Python prints values in Jinja templates. The template engine prints booleans as JavaScript does,
 * and numbers too: 1.0 as 1, and long integers without their last digits.
 */

/** A value within a map or a list, as the template engine hands it to functions. */
interface Inner {
  readonly value: unknown;
}
type Fields = ReadonlyMap<string, Inner>;

/** The only key of an object that stands for a number, whose text it has. No request can know it. */
const numberKey: string = crypto.getRandomValues(new Uint32Array(4)).join();

/** JSON text as a value, with stand-ins for the numbers that JavaScript prints otherwise than Python. */
export function parseNumbersExactly(text: string): unknown {
  const reviver = (_key: string, value: unknown, { source }: { readonly source?: string }) => {
    if (typeof value !== "number" || source === undefined) return value;
    const whole = source === "-0" ? "0" : source;
    const printed = /[.eE]/.test(source) ? floatText(value) : whole;
    return printed === numberText(value) ? value : { [numberKey]: printed };
  };
  // Engines that don't give the reviver the source text, older ones, keep what a number can hold.
  return JSON.parse(text, reviver as (key: string, value: unknown) => unknown);
}

/** `json.dumps(value, ensure_ascii=False)`, as the filter `tojson` is in transformers. */
export function pythonJson(value: unknown): string {
  if (typeof value === "number") return numberText(value);
  if (Array.isArray(value)) {
    return `[${value.map((each: Inner) => pythonJson(each.value)).join(", ")}]`;
  }
  if (!(value instanceof Map)) return JSON.stringify(value ?? null);
  const fields: Fields = value;
  const written = Array.from(
    fields,
    ([key, each]) => `${JSON.stringify(key)}: ${pythonJson(each.value)}`,
  );
  return exactNumber(fields) ?? `{${written.join(", ")}}`;
}

/**
 * `str(value)`; maps and lists are JSON.
 * @param none whether undefined stands for none
 */
export function pythonText(value: unknown, none: unknown): string {
  if (value === undefined) return none === true ? "None" : "";
  if (typeof value === "boolean") return value ? "True" : "False";
  return typeof value === "string" ? value : pythonJson(value);
}

/** The value with numbers as JavaScript has them, for filters that print in ways of their own. */
export function withoutStandIns(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((each: Inner) => withoutStandIns(each.value));
  if (!(value instanceof Map)) return value;
  const fields: Fields = value;
  const exact = exactNumber(fields);
  if (exact !== null) return Number(exact);
  return Object.fromEntries(
    Array.from(fields, ([key, each]) => [key, withoutStandIns(each.value)]),
  );
}

function exactNumber(fields: Fields): string | null {
  const text = fields.get(numberKey)?.value;
  return typeof text === "string" ? text : null;
}

/** A number of JavaScript's: whole ones are taken for integers. */
function numberText(value: number): string {
  return Number.isInteger(value) ? BigInt(value).toString() : floatText(value);
}

/** A float as Python's repr writes it: the shortest digits, with an exponent from 16 or below -4 on. */
function floatText(value: number): string {
  if (!Number.isFinite(value)) return value > 0 ? "Infinity" : "-Infinity";
  const [digits, exponent] = value.toExponential().split("e");
  const power = Number(exponent);
  if (power < -4 || power >= 16) {
    return `${digits}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
  }
  const text = String(value);
  return text.includes(".") ? text : `${text}.0`;
}
