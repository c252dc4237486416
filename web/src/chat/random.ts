/** 128 bits in hex. `crypto.randomUUID` is missing where the page came over plain HTTP. */
export function newId(): string {
  const words = crypto.getRandomValues(new Uint32Array(4));
  return Array.from(words, (word) => word.toString(16).padStart(8, "0")).join("");
}

export function newSeed(): number {
  return crypto.getRandomValues(new Uint32Array(1))[0]!;
}
