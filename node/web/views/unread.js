// All unread: branches of all repos with what others wrote in them since the last visit.

import { Icon } from "../parts/face.js";
import { Action, Empty } from "../parts/form.js";
import { html } from "../parts/html.js";
import { addressOf } from "../state/node.js";
import { seeAll, unread } from "../state/news.js";
import { actions } from "../state/session.js";
import { text } from "../strings/text.js";

export function Unread() {
  if (!unread.value.length) return html`<${Empty}><${Icon} name="check" size="l" /><p>${text.nothingUnread}</p><//>`;
  return html`<ul class="rows" id="unread">${unread.value.map(({ branch, unseen, more, mentions, place }) => html`<li key=${branch}>
      <a class="nav-row unread" href=${addressOf(branch)}><span class="cut"><bdi>${place.repo.name}</bdi> / <bdi>${place.branch.name}</bdi></span>
        <span class=${mentions ? "badge at" : "badge"}>${mentions ? "@ " : ""}${text.unreadCount(unseen, more)}<span class="unseen"> ${text.unreadWord}</span></span></a></li>`)}</ul>
    ${actions.value.includes("write") && html`<p class="buttons"><${Action} id="see-all" act=${() => seeAll(unread.value.map((one) => one.branch))}>${text.seeAll}<//></p>`}`;
}
