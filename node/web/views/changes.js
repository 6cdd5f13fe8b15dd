// A row of the timeline that stands for several changes of one document, and opens to show each.

import { cut, when, whenExactly, whoOf } from "../parts/format.js";
import { html } from "../parts/html.js";
import { Lanes } from "../parts/tangle.js";
import { addressOf } from "../state/node.js";
import { text } from "../strings/en.js";
import { Component } from "../vendor/preact.js";

const NAMES_SHOWN = 3;

/** The authors of a group, each once, the latest first. */
export function authorsOf(group, names) {
  return [...new Set(group.rows.map(({ item }) => whoOf(item, names)))];
}

/** Drawn again only if something of it changed, as other rows. `authors`: their names, joined by line feeds. */
export class Changes extends Component {
  shouldComponentUpdate(next, state) {
    const same = ["shape", "authors", "branch", "isReached", "isFresh", "isSince"];
    const [old, now] = [this.props.group.rows, next.group.rows];
    return state !== this.state || same.some((name) => next[name] !== this.props[name]) || old.length !== now.length || old[0] !== now[0];
  }

  render({ group, drawing, width, authors, branch, isReached, isFresh, isSince, names, reach }, { isOpen }) {
    const { document, rows } = group;
    const tab = isReached ? 0 : -1;
    const all = authors.split("\n");
    const who = `${all.slice(0, NAMES_SHOWN).join(", ")}${all.length > NAMES_SHOWN ? ` ${text.andMore(all.length - NAMES_SHOWN)}` : ""}`;
    const said = text.changed[document](rows.length);
    const [first, last] = [rows.at(-1).item, rows[0].item];
    const classes = [isFresh && "fresh", drawing.isHead && "head"].filter(Boolean).join(" ");
    return html`<li class=${classes}>
      <${Lanes} drawing=${drawing} width=${width} />
      <article tabindex=${tab} data-commit=${group.key} data-several aria-label=${text.changedBy(said, who)} onFocusIn=${reach}>
        <p class="by"><bdi class="who">${who}</bdi>${isFresh && html` <span class="badge">${text.isNewToYou}</span>`}
          <span class="when" title=${text.fromTo(whenExactly(first.time), whenExactly(last.time))}>${text.fromTo(when(first.time), when(last.time))}</span></p>
        <p class="said kind"><a href=${addressOf(branch, document)} tabindex=${tab}>${said}</a>
          <button type="button" class="quiet" tabindex=${tab} aria-expanded=${Boolean(isOpen)} onClick=${() => this.setState({ isOpen: !isOpen })}>${isOpen ? text.less : text.more}</button></p>
        ${isOpen && html`<ol class="plain changes" reversed>${rows.map(({ item }) => html`<li key=${item.commit}>
          <a class="when" href=${addressOf(branch, "commit", item.commit)} tabindex=${tab} title=${whenExactly(item.time)}>${when(item.time)}</a> <bdi>${cut(whoOf(item, names))}</bdi></li>`)}</ol>`}
      </article>
      ${isSince && html`<p class="since">${text.newSince}</p>`}
    </li>`;
  }
}
