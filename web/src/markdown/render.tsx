import type { Tokens } from "marked";
import type { ComponentChildren, VNode } from "preact";
import { CodeBlock } from "./code-block.tsx";
import type { Token } from "./lexer.ts";
import { webLink } from "./link.ts";

/** The children of a token that has some. */
const within = (token: { readonly tokens?: unknown }): readonly Token[] =>
  (token.tokens ?? []) as readonly Token[];

const all = (tokens: readonly Token[]): ComponentChildren[] => tokens.map(rendered);

/** An element for a token. Text becomes text nodes alone: no part of a reply is ever read as HTML. */
export function rendered(token: Token): ComponentChildren {
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "code":
      return <CodeBlock language={languageOf(token)} text={token.text} />;
    case "heading":
      return heading(token);
    case "hr":
      return <hr />;
    case "blockquote":
      return <blockquote>{all(within(token))}</blockquote>;
    case "list":
      return list(token);
    case "list_item":
      return <li>{all(within(token))}</li>;
    case "table":
      return table(token);
    case "paragraph":
      return <p>{all(within(token))}</p>;
    default:
      return renderedInline(token);
  }
}

type BlockType =
  | "space"
  | "def"
  | "code"
  | "heading"
  | "hr"
  | "blockquote"
  | "list"
  | "list_item"
  | "table"
  | "paragraph";

function renderedInline(token: Exclude<Token, { type: BlockType }>): ComponentChildren {
  switch (token.type) {
    case "strong":
      return <strong>{all(within(token))}</strong>;
    case "em":
      return <em>{all(within(token))}</em>;
    case "del":
      return <del>{all(within(token))}</del>;
    case "codespan":
      return <code>{token.text}</code>;
    case "br":
      return <br />;
    case "checkbox":
      return <span class="task">{token.checked ? "☑ " : "☐ "}</span>;
    case "link":
      return link(token.href, token.raw, within(token).map(inLink));
    case "image":
      // Nothing is fetched from elsewhere: whoever wants to see it can follow the link.
      return link(token.href, token.raw, imageText(token));
    case "text":
      return token.tokens ? all(within(token)) : token.text;
    case "escape":
      return token.text;
    case "verbatim":
    case "html":
      return token.raw;
    default:
      return token satisfies never;
  }
}

const imageText = ({ text, href }: Tokens.Image): string => `Image: ${text || href}`;

/** An image in a link leads where that leads. */
const inLink = (token: Token): ComponentChildren =>
  token.type === "image" ? imageText(token) : rendered(token);

/** As it is written, where it leads to nothing that a reply may link to. */
function link(href: string, raw: string, children: ComponentChildren): ComponentChildren {
  const url = webLink(href);
  if (url === null) return raw;
  return (
    <a href={url} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  );
}

const headings = ["h3", "h4", "h5", "h6"] as const;

/** Below the headings of the page itself. */
function heading(token: Tokens.Heading): VNode {
  const Level = headings[Math.min(token.depth, headings.length) - 1]!;
  return <Level>{all(within(token))}</Level>;
}

function list({ ordered, start, items }: Tokens.List): VNode {
  const children = items.map((item) => <li>{all(within(item))}</li>);
  if (!ordered) return <ul>{children}</ul>;
  return <ol start={start === "" ? 1 : start}>{children}</ol>;
}

function table({ header, rows }: Tokens.Table): VNode {
  return (
    // Wide tables scroll on their own, by keys too.
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable
    <section class="scroll" tabIndex={0} aria-label="Table">
      <table>
        <thead>
          <tr>
            {header.map((cell) => (
              <th scope="col" class={alignment(cell)}>
                {all(within(cell))}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr>
              {row.map((cell) => (
                <td class={alignment(cell)}>{all(within(cell))}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

const alignment = ({ align }: Tokens.TableCell): string => (align === null ? "" : `at-${align}`);

/** The first word behind the fence. */
const languageOf = ({ lang = "" }: Tokens.Code): string => lang.split(/\s/, 1)[0]!;
