// Peers with their transfers, and how one adds and bans them.

import { Action, Empty, Form, Loaded, Skeleton, useLoaded } from "../parts/form.js";
import { bytes, short, when } from "../parts/format.js";
import { html } from "../parts/html.js";
import { isLive, peers } from "../state/node.js";
import { api, isPerson, tell } from "../state/session.js";
import { text } from "../strings/opened.js";
import { Transfer } from "./standing.js";

export function Peers() {
  const lists = useLoaded(() => api.listPeers(), []);
  const again = lists.again;
  return html`
    ${!isLive.value && html`<p class="alarm">${text.peersUnknown}</p>`}
    ${!peers.value && html`<${Skeleton} />`}
    ${peers.value?.length === 0 && html`<${Empty}><p>${text.noPeers}</p><//>`}
    <ul id="peers" class="plain">${(peers.value ?? []).filter(isTold).map((peer) => html`<${Peer} key=${`${peer.peer} ${peer.direction} ${peer.path}`} peer=${peer} again=${again} />`)}</ul>
    <details><summary>${text.addPeer}</summary>
    <${Form} id="add-peer" button=${text.add} send=${async ({ address, peer, relay }) => {
      await api.addPeer({ address: address.trim(), peer: peer.trim(), relay: relay ? true : null });
      await again();
    }}>
      <label>${text.address} <input name="address" required maxlength="300" placeholder=${text.addressHint} autocomplete="off" /></label>
      <label>${text.nodeId} <input name="peer" required maxlength="128" autocomplete="off" /></label>
      <label class="check"><input type="checkbox" name="relay" /> ${text.isRelay}</label><//></details>
    <${JoinRelay} again=${again} />
    <${Loaded} of=${lists} lines=${2}>${({ known, banned }) => html`
      ${known.length > 0 && html`<details><summary>${text.known(known.length)}</summary><ul class="plain">${known.map((one) => html`<li>
        <span class="id">${short(one.peer)}</span> <span class="facts">${one.address}${one.reached_at ? ` · ${text.reached(when(one.reached_at))}` : ""}</span></li>`)}</ul></details>`}
      ${banned.length > 0 && html`<h3>${text.banned}</h3><ul class="plain">${banned.map((peer) => html`<li><span class="id">${short(peer)}</span>
        <${Action} class="quiet" act=${() => api.unbanPeer({ peer }).then(again)}>${text.unban}<//></li>`)}</ul>`}`}<//>`;
}

/** Whether a connection is to be told of: a second one to the same computer that is not there is not. */
function isTold(one) {
  return one.state === "connected" || !peers.value.some((other) => other.peer === one.peer && other.state === "connected");
}

function Peer({ peer, again }) {
  const isConnected = peer.state === "connected";
  const shared = peer.topics.filter((topic) => topic.state !== "not joined"); // others are not the peer's to have
  const inSync = shared.filter((topic) => topic.state === "in sync").length;
  const behind = peer.topics.reduce((total, topic) => total + topic.behind, 0);
  const called = text.calledPeer(peer);
  const name = called || short(peer.peer);
  const shown = isLive.value ? (text.peerStates[peer.state] ?? peer.state) : text.unknown;
  return html`<li>
    <bdi class=${called ? "person" : "id"}>${name}</bdi> <span class=${`sync ${isConnected && isLive.value ? "" : "off"}`}>${shown}</span>${peer.relay ? html` <span class="facts">${text.relay}</span>` : ""}
    ${peer.through && html`<p class="facts">${text.throughRelay(peer.through_name || peer.through)}</p>`}
    ${isConnected && html`${shared.filter((topic) => topic.state !== "in sync").map((topic) => html`<p class="facts"><bdi>${topic.name}</bdi>: ${text.transfer(topic)} <${Transfer} of=${topic.progress} /></p>`)}`}
    ${peer.last_error && html`<p class="facts">${text.lastError(text.nodeSaid(peer.last_error))}</p>`}
    <details class="more"><summary>${text.change}</summary>
      ${isPerson.value && html`<${Form} button=${text.save_} keep send=${async ({ name: said }) => {
        await api.setPetname({ user: peer.peer, name: said.trim() || null, peer: true });
        await again();
      }}><label>${text.petname} <input name="name" maxlength="64" defaultValue=${peer.name} autocomplete="off" /></label><//>`}
      <div class="buttons"><${Action} question=${text.removePeerQuestion(name)} act=${() => remove(peer, name, again)}>${text.remove}<//>
      <${Action} class="danger" question=${text.banQuestion(name)} act=${() => ban(peer.peer, name, again)}>${text.ban}<//></div></details>${" "}
    <details class="more"><summary>${text.forExperts}</summary>
      <p class="facts">${[text.directions[peer.direction], peer.address, peer.websocket && !peer.address.includes("://") && text.byWebSocket, peer.path === "punched" && text.punched].filter(Boolean).join(" · ")}</p>
      ${isConnected && html`<p class="facts">${text.topics(inSync, shared.length, behind)}</p>
        <p class="facts">${text.rates(peer.sent, peer.rates.sent, peer.received, peer.rates.received)}</p>`}
      <p class="id">${peer.peer}</p>
    </details>
  </li>`;
}

/** For a link with which a relay gives an account to this node. */
function JoinRelay({ again }) {
  return html`<details><summary>${text.joinRelay}</summary>
    <p>${text.joinRelayAbout}</p>
    <${Form} id="join-relay" button=${text.joinRelay} send=${async ({ link }) => {
      const joined = await api.joinRelay({ link: link.trim() });
      await again();
      tell(text.joinedRelay(joined.address, bytes(joined.quota)));
    }}><label>${text.link} <textarea name="link" rows="3" required maxlength="8192" spellcheck="false" placeholder=${text.relayLinkHint}></textarea></label><//>
  </details>`;
}

async function remove({ peer }, name, again) {
  const settings = await settingsOf(peer);
  await api.removePeer({ peer });
  await again();
  tell(text.removed(name), settings && (() => api.restorePeer(settings).then(again)));
}

async function ban(peer, name, again) {
  const settings = await settingsOf(peer);
  await api.banPeer({ peer });
  await again();
  tell(text.bannedNow(name), async () => {
    await api.unbanPeer({ peer });
    if (settings) await api.restorePeer(settings);
    await again();
  });
}

/** What a removal forgets of a peer: where it is dialed, and what it may keep. Null: it is only connected. */
async function settingsOf(peer) {
  try {
    return await api.showPeer({ peer });
  } catch (error) {
    if (error.code !== "not_found") throw error;
    return null;
  }
}
