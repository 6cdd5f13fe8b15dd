// Who has what of a repo: computers that follow it now, and those that were seen to hold all of it.

import { Face, Icon } from "../parts/face.js";
import { useLoaded } from "../parts/form.js";
import { when } from "../parts/format.js";
import { html } from "../parts/html.js";
import { beside, memberOf } from "../state/node.js";
import { actions, api } from "../state/session.js";
import { text } from "../strings/text.js";

const SHOWN = 12; // of those that are not connected the latest

/** What each computer has, and whether its user is a member; nothing for a token that may not see them. */
export function useHolders(repo) {
  const loaded = useLoaded(async () => (actions.value.includes("node") ? (await api.listHolders({ repo: repo.repo })).holders : []), [repo.repo]);
  return loaded.data ?? [];
}

/** The computer of a person's devices that has most: the list has that one first. */
export function holderOf(holders, devices) {
  return holders.find(({ owner }) => devices.some((one) => one.user === owner?.user));
}

/** What a computer has, in words and a sign. An excluded one stays connected for a while. */
export function Has({ holder }) {
  const isStranger = holder.member === false;
  const sign = holder.has_all ? "" : holder.connected && !isStranger ? "going" : "off";
  const said = [text.holds(holder, when), isStranger && text.notMember].filter(Boolean).join(", ");
  return said && html`<span class=${`sync ${sign}`}>${said}</span>`;
}

export function Holders({ repo }) {
  const all = useHolders(repo);
  const near = all.filter((one) => one.connected);
  const shown = [...near, ...all.filter((one) => !one.connected).slice(0, SHOWN)];
  return shown.length > 0 && html`<ul id="holders" class="rows">${shown.map((one) => html`<li class="line" key=${one.peer}><${Holder} one=${one} /></li>`)}</ul>`;
}

function Holder({ one }) {
  const called = text.calledPeer(one);
  const id = one.owner?.user ?? one.peer;
  const face = one.relay ? html`<${Icon} name="laptop" />` : html`<${Face} id=${id} name=${(one.owner?.mine && !one.name && one.owner.device) || called} size="s" isOn=${one.connected} />`;
  const isMember = memberOf(id);
  const name = isMember ? html`<a class="person whole-row" href=${beside("person", id)}><bdi>${called || id.slice(0, 12)}</bdi></a>` : called ? html`<bdi>${called}</bdi>` : html`<a class="id" href=${beside("peers")}>${one.relay ? text.relay : text.computer} ${one.peer.slice(0, 12)}</a>`;
  return html`${face}<span class="grow"><b class="cut">${name}</b><${Has} holder=${one} /></span>`;
}
