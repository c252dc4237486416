/** The markup of calls, as templates teach it. */
export const callOpening = "<tool_call>";
export const callClosing = "</tool_call>";
export const functionOpening = "<function=";
export const functionClosing = "</function>";
export const parameterOpening = "<parameter=";
export const parameterClosing = "</parameter>";
