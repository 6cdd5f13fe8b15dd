// Markdown of anybody, shown without markup of theirs: marked's tokens become Preact's nodes of a few kinds, and every
// text stays text. Nothing is loaded: pictures become links. HTML is shown as it was typed.

import { Lexer } from "../vendor/marked.js";
import { isMine } from "../state/node.js";
import { html } from "./html.js";

// The lexer's time grows faster than what it reads, and a text of a peer must not hold the page up. Within these bounds
// the worst texts take some 20 ms in a timeline, and 200 ms where one is looked at alone.
const BOUNDS = { row: { length: 4000, marks: 200 }, alone: { length: 20_000, marks: 600 } };
const MARK = /[*_~`[<&|@!]/g; // what a text is tried at again and again for
const DEPTH_MAX = 12; // of lists in quotes in lists
const NODES_MAX = 2000;
const MENTION = /@([a-z2-7]{52})/;
const ID_SHOWN = 12;
const BUDGET_MS = 2000; // for all texts of BUDGET_SPAN_MS together
const BUDGET_SPAN_MS = 10_000;
const SAFE = /^(https?:\/\/|mailto:)/i;

let spent = 0; // milliseconds since `spentSince`
let spentSince = -Infinity;

/** `tab`: the tab index of links. Text that is too long, or too deep, is shown as it was typed. */
export function Markdown({ source, tab, bounds = "row", mentions = [] }) {
  return nodesOf(source, tab, bounds, mentions) ?? html`<p class="plain-text">${source}</p>`;
}

/** Nodes, or null where the text is to be shown as it is. */
export function nodesOf(source, tab = -1, bounds = "row", mentions = []) {
  const { length, marks } = BOUNDS[bounds];
  if (source.length > length || (source.match(MARK)?.length ?? 0) > marks) return null;
  const began = performance.now();
  if (began - spentSince > BUDGET_SPAN_MS) [spent, spentSince] = [0, began];
  if (spent > BUDGET_MS) return null;
  const count = { left: NODES_MAX };
  try {
    return blocks(new Lexer({ gfm: true, breaks: true }).lex(source), { tab, count, names: new Map(mentions.map((one) => [one.user, one.name])) }, 0);
  } catch {
    return null; // deeper than the lexer or these functions go
  } finally {
    spent += performance.now() - began;
  }
}

function blocks(tokens, given, depth) {
  if (depth > DEPTH_MAX) throw new RangeError("too deep");
  return tokens.map((token) => {
    given.count.left -= 1;
    if (given.count.left < 0) throw new RangeError("too many");
    const inner = () => inline(token.tokens ?? [], given, depth + 1);
    switch (token.type) {
      case "space":
      case "def":
        return null;
      case "heading":
        return html`<p class="heading">${inner()}</p>`; // the page's own outline has no place for others' headings
      case "paragraph":
        return html`<p>${inner()}</p>`;
      case "code":
        return html`<pre tabindex=${given.tab}><code>${token.text}</code></pre>`;
      case "blockquote":
        return html`<blockquote>${blocks(token.tokens, given, depth + 1)}</blockquote>`;
      case "hr":
        return html`<hr />`;
      case "list": {
        const items = token.items.map(
          (item) => html`<li>${item.task ? (item.checked ? "☑ " : "☐ ") : ""}${blocks(item.tokens, given, depth + 1)}</li>`,
        );
        return token.ordered ? html`<ol start=${token.start}>${items}</ol>` : html`<ul>${items}</ul>`;
      }
      case "table":
        return html`<table><thead><tr>${token.header.map((cell) => html`<th>${inline(cell.tokens, given, depth + 1)}</th>`)}</tr></thead>
          <tbody>${token.rows.map((row) => html`<tr>${row.map((cell) => html`<td>${inline(cell.tokens, given, depth + 1)}</td>`)}</tr>`)}</tbody></table>`;
      case "text":
        return token.tokens ? inner() : withNames(token.raw, given.names);
      case "checkbox":
        return null;
      default:
        return html`<p>${token.raw.trim()}</p>`; // HTML, and what a later version of the lexer may know
    }
  });
}

function inline(tokens, given, depth) {
  if (depth > DEPTH_MAX) throw new RangeError("too deep");
  return tokens.map((token) => {
    given.count.left -= 1;
    if (given.count.left < 0) throw new RangeError("too many");
    const inner = () => (token.tokens ? inline(token.tokens, given, depth + 1) : token.text);
    switch (token.type) {
      case "strong":
        return html`<strong>${inner()}</strong>`;
      case "em":
        return html`<em>${inner()}</em>`;
      case "del":
        return html`<del>${inner()}</del>`;
      case "codespan":
        return html`<code>${token.text}</code>`;
      case "br":
        return html`<br />`;
      case "escape":
        return token.text;
      case "text":
        return token.tokens ? inner() : withNames(token.raw, given.names);
      case "link":
        return SAFE.test(token.href) ? link(token.href, inner(), given.tab) : token.raw;
      case "image":
        return SAFE.test(token.href) ? link(token.href, token.text || token.href, given.tab) : token.raw;
      default:
        return token.raw;
    }
  });
}

/** A text in which ids behind an @ are names. */
function withNames(said, names) {
  if (!names.size) return said;
  return said.split(MENTION).map((part, index) => (index % 2 ? html`<bdi class=${isMine(part) ? "mention mine" : "mention"}>@${names.get(part) || part.slice(0, ID_SHOWN)}</bdi>` : part));
}

function link(address, shown, tab) {
  return html`<a href=${address} target="_blank" rel="noopener noreferrer nofollow" title=${address} tabindex=${tab}>${shown}</a>`;
}
