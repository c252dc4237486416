/** Replies that differ in how well they can be foreseen. */
export interface ReplyKind {
  readonly name: string;
  /** What a chat asks for it. */
  readonly asked: string;
  /** A text that goes on like it. */
  readonly begun: string;
}

const repeated =
  "Mia saw a golden crow and felt calm. The heavy drum was found near the busy bakery. 17, 4, 88";

export const replyKinds: readonly ReplyKind[] = [
  {
    name: "copy",
    asked: `Repeat this exactly:\n${repeated}`,
    begun: `${repeated}\n${repeated}\n${repeated.slice(0, 36)}`,
  },
  {
    name: "arithmetic",
    asked: "What is 472 + 385?",
    begun: "1 + 1 = 2\n2 + 2 = 4\n3 + 3 = 6\n4 + 4 = ",
  },
  {
    name: "story",
    asked: "Write a story with a fox and a bell. The hero is Nina.",
    begun: "Once upon a time Nina met a fox near the old mill. The fox",
  },
  {
    name: "code",
    asked: "Write a TypeScript function `chunk` that splits an array into chunks of a given size.",
    begun: "function add(a: number, b: number): number {\n  return a + b;\n}\n\nfunction sub(",
  },
];
