/** What is done to each block, in this order. */
interface Stages<Block, Input, Output> {
  read(block: Block): Promise<Input>;
  make(block: Block, input: Input): Output;
  write(block: Block, output: Output): Promise<unknown>;
}

/**
 * Takes blocks through three stages, one after the other: while one is made, the next is read and the
 * one before is written. So three are held at most.
 *
 * @throws what a stage throws; reads and writes that are under way then end unheard
 */
export async function pipeline<Block, Input, Output>(
  blocks: readonly Block[],
  { read, make, write }: Stages<Block, Input, Output>,
): Promise<void> {
  let reading: Promise<Input> | null = null;
  let writing: Promise<unknown> = Promise.resolve();
  for (const [i, block] of blocks.entries()) {
    const input = await (reading ?? read(block));
    const next = blocks[i + 1];
    reading = next === undefined ? null : heardLater(read(next));
    const output = make(block, input);
    await writing;
    writing = heardLater(write(block, output));
  }
  await writing;
}

/** A promise that may fail before it is waited for, which would end the process. */
function heardLater<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}
