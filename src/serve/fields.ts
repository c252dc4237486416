/**
 * Schemas of request fields. The message of each says what the field must be ("a string"); the
 * error adds the field's name and what was given instead.
 */
import { z } from "zod";
import { InputError } from "../errors.ts";
import { shown } from "../json.ts";

export const text: z.ZodType<string> = z.string({ error: "a string" });
export const name: z.ZodType<string> = z.string({ error: "a name" }).min(1, { error: "a name" });
export const flag: z.ZodType<boolean> = z.boolean({ error: "true or false" });
export const count: z.ZodType<number> = z
  .int({ error: "a whole number over 0" })
  .min(1, { error: "a whole number over 0" });
export const wholeNumber: z.ZodType<number> = z
  .int({ error: "a whole number of at least 0" })
  .min(0, { error: "a whole number of at least 0" });
/** @param most the largest that is taken */
export const countTo = (most: number): z.ZodType<number> => {
  const error = `a whole number from 0 to ${most}`;
  return z.int({ error }).min(0, { error }).max(most, { error });
};
export const mapping: z.ZodType<Record<string, unknown>> = z.record(z.string(), z.unknown(), {
  error: "an object",
});

/** A list whose items are checked elsewhere. */
export function rawList<T>(): z.ZodType<T[]> {
  return z.custom<T[]>(Array.isArray, { error: "a list" });
}

/** A list that is read up to its first fault: a body full of them costs no more than one. */
export function list<T>(item: z.ZodType<T>): z.ZodType<T[]> {
  return rawList<unknown>().transform((values, context) => {
    const items: T[] = [];
    for (const [index, value] of values.entries()) {
      const result = item.safeParse(value);
      if (!result.success) {
        copyIssues(result.error, context, [index]);
        return z.NEVER;
      }
      items.push(result.data);
    }
    return items;
  });
}

/** Checks a value by `schema` and keeps it as it came, in the order in which its keys came. */
export function asGiven<T>(schema: z.ZodType): z.ZodType<T> {
  return z.custom<T>().superRefine((value, context) => {
    const { error } = schema.safeParse(value);
    if (error) copyIssues(error, context, []);
  });
}

function copyIssues(error: z.ZodError, context: z.RefinementCtx, at: readonly number[]): void {
  for (const { message, path } of error.issues) {
    context.addIssue({ code: "custom", message, path: [...at, ...path] });
  }
}

/** @throws InputError naming the field, what it must be and what it is. */
export function parseFields<T>(schema: z.ZodType<T>, body: unknown): T {
  const result = schema.safeParse(body);
  if (result.success) return result.data;
  const { path, message } = result.error.issues[0]!;
  const name = pathName(path);
  const value = valueAt(body, path);
  if (value === undefined) {
    throw new InputError(`${name} is missing: it must be ${message}.`, name, "missing_field");
  }
  throw new InputError(`${name} must be ${message}, not ${shown(value)}.`, name, "invalid_type");
}

/** An object without the fields that are null, which is as good as absent. */
export function withoutNulls<T extends object>(value: T): T {
  const present = Object.entries(value).filter(([, each]) => each !== null);
  return Object.fromEntries(present) as T;
}

function pathName(path: readonly PropertyKey[]): string {
  const steps = path.map((step) => (typeof step === "number" ? `[${step}]` : `.${String(step)}`));
  return steps.join("").replace(/^\./, "");
}

function valueAt(body: unknown, path: readonly PropertyKey[]): unknown {
  let value = body;
  for (const step of path) value = (value as Record<PropertyKey, unknown>)[step];
  return value;
}
