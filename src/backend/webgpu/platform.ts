/** What all adapters are asked for with: it decides which comes first. */
export const adapterOptions: GPURequestAdapterOptions = { powerPreference: "high-performance" };

/** What the webgpu backend needs of its surroundings: Dawn in Node, or a browser. */
export interface GpuPlatform {
  /** The implementation, for people and receipts: `Dawn`, `browser`. */
  readonly implementation: string;
  /** What to do where there is no adapter, in a sentence or two. */
  readonly missingAdapter: string;
  /**
   * The adapters' entry point.
   * @param adapter part of an adapter's name; null takes the first
   * @throws BackendError where there is no WebGPU at all
   */
  gpu(adapter: string | null): GPU;
  /** The names of all adapters, in their order, as far as they can be known. Equal GPUs have equal names. */
  adapterNames(): Promise<readonly string[]>;
}
