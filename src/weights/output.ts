/** A file that is being written, at any offsets. */
export interface OutputFile {
  write(offset: number, bytes: Uint8Array): Promise<void>;
  /** Ends the file; its bytes are durable when this returns. */
  close(): Promise<void>;
}

/** A folder that appears under its name with all of its files, or not at all. */
export interface OutputFolder {
  readonly name: string;
  create(path: string): Promise<OutputFile>;
  /** Puts the folder under its final name. */
  commit(): Promise<void>;
  /** Removes all that was written. */
  abort(): Promise<void>;
}
