const schemes: ReadonlySet<string> = new Set(["http:", "https:", "mailto:"]);

/** Where a link of a reply leads; null for all but the web and mail: scripts, files, this page. */
export function webLink(href: string): string | null {
  const url = URL.parse(href);
  return url !== null && schemes.has(url.protocol) ? url.href : null;
}
