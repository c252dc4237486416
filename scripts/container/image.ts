import { readFileSync } from "node:fs";

/** What a Dockerfile's last stage says of containers, as far as scripts/container-root.ts runs it. */
export interface Image {
  /** Debian's, that it is built on. */
  readonly release: string;
  /** UID:GID. */
  readonly user: string;
  readonly env: Readonly<Record<string, string>>;
  readonly volume: string;
  /** The entrypoint, and what follows it where nothing is given. */
  readonly command: readonly string[];
  readonly healthcheck: readonly string[];
}

/** @throws Error for a line that isn't there */
export function readImage(dockerfile: string): Image {
  const text = readFileSync(dockerfile, "utf8");
  const last = text.slice(text.lastIndexOf("\nFROM "));
  const found = (pattern: RegExp): string => {
    const value = pattern.exec(last)?.[1];
    if (value === undefined) throw new Error(`${dockerfile} has no line ${pattern}.`);
    return value;
  };
  const words = (pattern: RegExp): string[] => JSON.parse(found(pattern));
  return {
    release: found(/^FROM debian:(\w+)-slim$/m),
    user: found(/^USER (\d+:\d+)$/m),
    env: Object.fromEntries(
      [...last.matchAll(/^ENV (\w+)=(.*)$/gm)].map(([, name, value]) => [name, value]),
    ),
    volume: found(/^VOLUME (\/\S+)$/m),
    command: [...words(/^ENTRYPOINT (\[.*\])$/m), ...words(/^CMD (\[.*\])$/m)],
    healthcheck: words(/^HEALTHCHECK .*\\\n {2}CMD (\[.*\])$/m),
  };
}
