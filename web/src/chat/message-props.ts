import type { Message } from "../conversation/message.ts";
import type { Page } from "../shared/page.ts";
import type { Chats } from "./chats.ts";
import type { Run } from "./run.ts";

/** What a message is shown with. */
export interface MessageProps<M extends Message = Message> {
  readonly page: Page;
  readonly chats: Chats;
  readonly message: M;
  /** It, and what stands in its place in other branches. */
  readonly branches: readonly Message[];
  /** That writes it, while it does. */
  readonly run: Run | undefined;
  readonly isLast: boolean;
}
