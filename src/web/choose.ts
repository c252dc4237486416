/**
 * The backend for this machine. A GPU that the browser imitates on the CPU is many times slower than
 * the wasm backend.
 */
export async function chooseBackend(gpu: GPU | undefined): Promise<"webgpu" | "wasm"> {
  const adapter = await gpu?.requestAdapter({ powerPreference: "high-performance" });
  return adapter && !adapter.info.isFallbackAdapter ? "webgpu" : "wasm";
}
