// The newest posts of a branch whose past is on its way: to be read, and nothing more until they are in the timeline.

import { Face } from "../parts/face.js";
import { clock, dayName, dayOf, nameIn, when, whenExactly, whoOf } from "../parts/format.js";
import { html } from "../parts/html.js";
import { Markdown } from "../parts/markdown.js";
import { text } from "../strings/text.js";

export function Arriving({ items, earlier, waiting, vouched, names }) {
  const said = items.filter((item) => item.text);
  return html`<section id="arriving" aria-label=${text.arriving}>
    <p class="day">${text.onTheirWay(earlier)}${vouched && html`<br />${text.vouched(vouched.name, when(vouched.at))}`}</p>
    <ol class="posts">${said.map((item, index) => {
      const who = whoOf(item, names);
      const day = dayOf(item.time);
      const isFirst = !index || dayOf(said[index - 1].time) !== day;
      return html`<li key=${item.commit}>${isFirst && html`<div class="day"><h2>${dayName(day)}</h2></div>`}
        <article class="post" data-commit=${item.commit} aria-label=${text.writtenBy(who)}>
          <${Face} id=${item.author} name=${nameIn(item, names)} />
          <div><p class="by"><b class="who"><bdi>${who}</bdi></b> <time class="when" datetime=${whenExactly(item.time)}>${clock(item.time)}</time></p>
          <div class="said" dir="auto"><${Markdown} source=${item.text} tab=${-1} mentions=${item.mentions} /></div></div>
        </article></li>`;
    })}</ol>
    ${waiting > 0 && html`<p class="day">${text.unconfirmed(waiting)}</p>`}
  </section>`;
}
