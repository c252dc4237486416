/** What the webgpu backend needs of its surroundings: Dawn in Node, or a browser. */
export interface GpuPlatform {
  /** The implementation, for people and receipts: `Dawn (webgpu 0.6.2)`, `browser`. */
  readonly implementation: string;
  /**
   * The adapters' entry point. @param adapter part of an adapter's name; null takes the first
   * @throws InputError with the list of adapters where none has that name
   */
  gpu(adapter: string | null): GPU;
}
