import { shown } from "../json.ts";
import { type Expression, nothing } from "./expressions.ts";
import { countsOf, fail, type SchemaRecord } from "./schema-parts.ts";
import type { StringForm } from "./string-form.ts";

const leapYear = "(\\d\\d(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)";
const date = [
  "\\d{4}-(0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])",
  "\\d{4}-(0[469]|11)-(0[1-9]|[12]\\d|30)",
  "\\d{4}-02-(0[1-9]|1\\d|2[0-8])",
  `${leapYear}-02-29`,
].join("|");
const time = "([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,9})?(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)";
const days = "(\\d{1,9}Y(\\d{1,9}M)?(\\d{1,9}D)?|\\d{1,9}M(\\d{1,9}D)?|\\d{1,9}D)";
const hours = "T(\\d{1,9}H(\\d{1,9}M)?(\\d{1,9}S)?|\\d{1,9}M(\\d{1,9}S)?|\\d{1,9}S)";
const label = "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?";
const mailbox = "[A-Za-z0-9_%+-]{1,32}(\\.[A-Za-z0-9_%+-]{1,32}){0,3}";
const octet = "(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
const hex4 = "[0-9A-Fa-f]{1,4}";
const ipv6 = [
  `(${hex4}:){7}${hex4}`,
  ...[1, 2, 3, 4, 5, 6].map((most) => `(${hex4}:){1,${most}}(:${hex4}){1,${7 - most}}`),
  `(${hex4}:){1,7}:`,
  `:((:${hex4}){1,7}|:)`,
].join("|");

/** The formats that are held to, as regexes of the whole string. Others only say what is meant. */
const formats: ReadonlyMap<unknown, string> = new Map([
  ["date", date],
  ["time", time],
  ["date-time", `(${date})T${time}`],
  ["duration", `P(\\d{1,9}W|${days}(${hours})?|${hours})`],
  ["email", `${mailbox}@${label}(\\.${label}){1,4}`],
  ["hostname", `${label}(\\.${label}){0,4}`],
  ["ipv4", `${octet}(\\.${octet}){3}`],
  ["ipv6", ipv6],
  ["uuid", `[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}`],
]);

/**
 * Strings of a schema.
 * @throws InputError
 */
export function stringOf(schema: SchemaRecord, at: string, form: StringForm): Expression {
  const { pattern, minLength, maxLength } = schema;
  if (pattern !== undefined) {
    if (typeof pattern !== "string") fail(at, `pattern must be a regex, not ${shown(pattern)}`);
    if (minLength !== undefined || maxLength !== undefined) {
      fail(at, "pattern can't be together with minLength or maxLength");
    }
    return form.matching(pattern);
  }
  if (minLength !== undefined || maxLength !== undefined) {
    const { least, most } = countsOf(schema, ["minLength", "maxLength"], at);
    return most !== null && most < least ? nothing : form.sized(least, most);
  }
  const format = formats.get(schema["format"]);
  return format === undefined ? form.any() : form.matching(`^(${format})$`);
}
