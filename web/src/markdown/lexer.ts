/** Markdown as models write it, read into tokens that the view turns into elements: never into HTML. */
import { Marked, type MarkedToken, type Tokens } from "marked";

/**
 * Text that is shown as it is written: formulas, in which `_`, `*` and `\` mean something else, and names
 * such as `__init__`.
 */
export interface Verbatim {
  readonly type: "verbatim";
  readonly raw: string;
}

export type Token = MarkedToken | Verbatim;

/** Longer texts are shown as they are: nobody reads them as prose, and each piece reads them again. */
const charsMax = 400_000;

/**
 * Formulas are `\(…\)`, `\[…\]`, `$$…$$`, and `$…$` as Pandoc has it: nothing blank inside its dollars, and no digit
 * behind, so that prices aren't formulas.
 */
const verbatim =
  /^(?:__[a-z0-9_]+__(?!\w)|\\\([^\n]*?\\\)|\\\[[\s\S]*?\\\]|\$\$[\s\S]+?\$\$|\$(?=\S)[^$\n]*?[^\s$\\]\$(?!\d))/;
const verbatimStart = /\\[([]|\$|__[a-z0-9]/;

/** An asterisk between letters or digits: 2*3*4, a*b*c. */
const joining = /^\*(?!\*)\w/;

const none = () => undefined;

const marked = new Marked({
  gfm: true,
  breaks: true,
  tokenizer: {
    // What looks like HTML is text.
    html: none,
    tag: none,
    // False is marked's own way; undefined says that there is nothing here.
    emStrong: (src, _, before = "") =>
      joining.test(src) && /\w$/.test(before) ? undefined : false,
    del: (src) => (src.startsWith("~~") ? false : undefined),
  },
  extensions: [
    {
      name: "verbatim",
      level: "inline",
      start: (src) => verbatimStart.exec(src)?.index,
      tokenizer(src) {
        const [raw] = verbatim.exec(src) ?? [];
        return raw === undefined ? undefined : { type: "verbatim", raw };
      },
    },
  ],
});

/** The blocks of a text. Their `raw`s, joined, are the text, with its line ends as `\n`. */
export function lex(text: string): readonly Token[] {
  if (text.length > charsMax) return plain(text);
  try {
    return marked.lexer(text) as unknown as readonly Token[];
  } catch {
    // Thousands of quotes in each other, say.
    return plain(text);
  }
}

function plain(text: string): readonly Token[] {
  const whole: Tokens.Code = { type: "code", raw: text, text };
  return [whole];
}
