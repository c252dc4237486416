/** Methods of a class that can be replaced. */
type Methods<T> = {
  [Name in keyof T]: T[Name] extends (...args: never[]) => unknown ? Name : never;
}[keyof T];

/**
 * Replaces a method of all objects of a class.
 * @returns takes it back
 */
export function patchMethod<T extends object, Name extends Methods<T>>(
  prototype: T,
  name: Name,
  make: (original: T[Name]) => T[Name],
): () => void {
  const original = Object.getOwnPropertyDescriptor(prototype, name)!;
  Object.defineProperty(prototype, name, { ...original, value: make(prototype[name]) });
  return () => Object.defineProperty(prototype, name, original);
}

/** The same of what a getter returns. */
export function patchGetter<T extends object, Name extends keyof T>(
  prototype: T,
  name: Name,
  get: (this: T, original: T[Name]) => T[Name],
): () => void {
  const original = Object.getOwnPropertyDescriptor(prototype, name)!;
  Object.defineProperty(prototype, name, {
    configurable: true,
    get(this: T) {
      return get.call(this, original.get!.call(this));
    },
  });
  return () => Object.defineProperty(prototype, name, original);
}
