// A row of the timeline that stands for several changes of one document, and opens to show each.

import { Icon } from "../parts/face.js";
import { clock, cut, when, whenExactly, whoOf } from "../parts/format.js";
import { hasPanel } from "../parts/groups.js";
import { html } from "../parts/html.js";
import { addressOf } from "../state/node.js";
import { text } from "../strings/text.js";
import { Component } from "../vendor/preact.js";
import { Came, Marks } from "./post_row.js";

const NAMES_SHOWN = 3;
const SIGNS = { text: "text", set: "list", dict: "sheet", json: "sheet", carried: "merge" };

/** The authors of a group, each once, the latest first. */
export function authorsOf(group, names) {
  return [...new Set(group.rows.map(({ item }) => whoOf(item, names)))];
}

/** Drawn again only if something of it changed, as other rows. `authors`: their names, joined by line feeds. */
export class Changes extends Component {
  shouldComponentUpdate(next, state) {
    const same = ["authors", "came", "last", "branch", "isReached", "isFresh", "isSince", "day", "place"];
    const [old, now] = [this.props.group.rows, next.group.rows];
    return state !== this.state || same.some((name) => next[name] !== this.props[name]) || old.length !== now.length || old[0] !== now[0];
  }

  render({ group, place, authors, branch, isReached, isFresh, isSince, day, came, last: ends, names, reach }, { isOpen }) {
    const { document, rows } = group;
    const tab = isReached ? 0 : -1;
    const all = authors.split("\n");
    const who = `${all.slice(0, NAMES_SHOWN).join(", ")}${all.length > NAMES_SHOWN ? ` ${text.andMore(all.length - NAMES_SHOWN)}` : ""}`;
    const said = text.changed[document](rows.length);
    const [first, last] = [rows.at(-1).item, rows[0].item];
    return html`<li class=${isFresh ? "fresh" : ""}><${Marks} day=${day} isSince=${isSince} came=${came} />
      <article class="event" tabindex=${tab} data-commit=${place} data-several aria-label=${text.changedBy(said, who)} onFocusIn=${reach}>
        <${Icon} name=${SIGNS[document]} size="s" />
        <div><p><b class="who"><bdi>${who}</bdi></b> ${hasPanel(document) ? html`<a class="said kind" href=${addressOf(branch, document, first.document)} tabindex=${tab}>${said}</a>` : html`<span class="said kind">${said}</span>`}
          <span class="when" title=${text.fromTo(whenExactly(first.time), whenExactly(last.time))}>${text.fromTo(clock(first.time), clock(last.time))}</span>${" "}
          <button type="button" class="link" tabindex=${tab} aria-expanded=${Boolean(isOpen)} onClick=${() => this.setState({ isOpen: !isOpen })}>${isOpen ? text.less : text.more}</button></p>
        ${isOpen && html`<ol class="changes">${rows.map(({ item }) => html`<li key=${item.commit}>
          <a class="when" href=${addressOf(branch, "commit", item.commit)} tabindex=${tab} title=${whenExactly(item.time)}>${when(item.time)}</a> <bdi>${cut(whoOf(item, names))}</bdi></li>`)}</ol>`}</div>
      </article><${Came} changes=${ends} /></li>`;
  }
}
