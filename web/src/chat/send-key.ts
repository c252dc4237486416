/** Enter sends, alone or with Ctrl or Command; with Shift, or while letters are being composed, it doesn't. */
export function isSendKey(event: KeyboardEvent): boolean {
  return event.key === "Enter" && !event.shiftKey && !event.isComposing;
}
