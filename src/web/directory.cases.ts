interface MemoryFile {
  getFile(): Promise<Blob>;
  createWritable(): Promise<MemoryWritable>;
}

interface MemoryWritable {
  write(bytes: Uint8Array): Promise<void>;
  close(): Promise<void>;
  abort(): Promise<void>;
}

/** A folder in memory, as far as the cache uses the interface of a browser's. */
export class MemoryDirectory {
  readonly entries: Map<string, MemoryDirectory | Uint8Array> = new Map();
  /** Files that may still be written before the quota is used up. */
  filesLeft: number = Number.POSITIVE_INFINITY;
  /** Thrown by the next write. */
  writeFault: Error | null = null;
  /** Files that are being written. */
  writing = 0;

  get handle(): FileSystemDirectoryHandle {
    return this as unknown as FileSystemDirectoryHandle;
  }

  async getDirectoryHandle(name: string, options?: { create: boolean }): Promise<MemoryDirectory> {
    const entry = this.entries.get(name);
    if (entry instanceof MemoryDirectory) return entry;
    if (!options?.create || entry) throw new Error("NotFoundError");
    const made = new MemoryDirectory();
    made.filesLeft = this.filesLeft;
    this.entries.set(name, made);
    return made;
  }

  async getFileHandle(name: string, options?: { create: boolean }): Promise<MemoryFile> {
    if (!options?.create && !this.entries.has(name)) throw new Error("NotFoundError");
    if (!this.entries.has(name)) this.entries.set(name, new Uint8Array());
    return {
      getFile: async () => new Blob([this.entries.get(name) as Uint8Array<ArrayBuffer>]),
      createWritable: async () => {
        const parts: Uint8Array[] = [];
        this.writing++;
        return {
          write: async (bytes: Uint8Array) => {
            const fault = this.writeFault;
            this.writeFault = null;
            if (fault) throw fault;
            parts.push(bytes.slice());
          },
          close: async () => {
            if (this.filesLeft-- <= 0) throw new DOMException("", "QuotaExceededError");
            this.entries.set(name, Buffer.concat(parts));
            this.writing--;
          },
          abort: async () => void this.writing--,
        };
      },
    };
  }

  async removeEntry(name: string): Promise<void> {
    if (!this.entries.delete(name)) throw new Error("NotFoundError");
  }

  async *keys(): AsyncGenerator<string> {
    yield* [...this.entries.keys()];
  }

  /** Every file below, by its path. */
  files(): ReadonlyMap<string, Uint8Array> {
    const all = new Map<string, Uint8Array>();
    for (const [name, entry] of this.entries) {
      if (entry instanceof Uint8Array) all.set(name, entry);
      else for (const [path, bytes] of entry.files()) all.set(`${name}/${path}`, bytes);
    }
    return all;
  }
}
