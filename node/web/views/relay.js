// This node as a relay: how full it is, accounts with quotas, who uses it, what it refuses, and the topics that it keeps.

import { Action, Empty, Form, LinkBox, Loaded, Skeleton, describeLink, useLoaded } from "../parts/form.js";
import { bytes, fold, short, when } from "../parts/format.js";
import { html } from "../parts/html.js";
import { useRepeated } from "../parts/polled.js";
import { beside, hasPanel, status } from "../state/node.js";
import { api, tell } from "../state/session.js";
import { ofRelay } from "../strings/relay.js";
import { text as ofPage } from "../strings/opened.js";
import { useState } from "../vendor/preact-hooks.js";

const text = { ...ofPage, ...ofRelay };
const POLL_MS = 10_000;
const SHOWN_MAX = 100; // accounts, topics
const UNITS = { MiB: 1024 ** 2, GiB: 1024 ** 3, TiB: 1024 ** 4 };
const DAY_SECONDS = 86_400;

/** A computer that is no relay refuses each question about one. */
export function Relay() {
  if (!status.value) return html`<${Skeleton} lines=${6} />`;
  return hasPanel("relay") ? html`<${Running} />` : html`<${Empty}><p>${text.noRelay}</p><p><a class="button" href=${beside("settings")}>${text.panels.settings}</a></p><//>`;
}

function Running() {
  const loaded = useRepeated(() => api.showRelay(), POLL_MS);
  return html`<p>${text.relayAbout}</p>
    <${Loaded} of=${loaded} lines=${6}>${(relay) => html`<${Room} relay=${relay} />`}<//>
    <h3>${text.accounts}</h3>
    <${Accounts} />
    <${Loaded} of=${loaded} lines=${6}>${(relay) => html`<${Visitors} relay=${relay} />
      <h3>${text.refusedTitle}</h3>
      <${Refusals} refusals=${relay.refusals} />`}<//>
    <h3>${text.relayTitle}</h3>
    <${Topics} />`;
}

function Room({ relay }) {
  const { circuits } = relay;
  const isSoon = relay.full_in_days !== null && relay.full_in_days <= 14;
  return html`<p id="relay-room"><label>${text.relayRoom(bytes(relay.size), bytes(relay.size_max), relay.topics)}
      <meter min="0" max="1" high="0.9" value=${relay.size / relay.size_max}></meter></label></p>
    <p id="relay-forecast" class=${isSoon ? "alarm" : "facts"}>${text.forecast(bytes(relay.growth), bytes(relay.free), relay.full_in_days, relay.full_first)}</p>
    <p class="facts">${text.accepts[relay.takes_strangers]}</p>
    ${relay.promised > relay.size_max && html`<p class="alarm">${text.promisedTooMuch(bytes(relay.promised), bytes(relay.size_max))}</p>`}
    ${relay.blocks_damaged > 0 && html`<p class="alarm">${text.blocksDamaged(relay.blocks_damaged)}</p>`}
    <p id="relay-circuits" class="facts">${circuits ? text.circuitsNow(circuits.open, circuits.open_max, bytes(circuits.bytes), bytes(circuits.bytes_per_second)) : text.noCircuits}</p>`;
}

function Accounts() {
  const loaded = useLoaded(() => api.listRelayAccounts(), [], true);
  const [filter, setFilter] = useState("");
  const [made, setMade] = useState(null);
  return html`
    <${Loaded} of=${loaded}>${({ accounts }) => {
      const found = accounts.filter((one) => fold(one.name).includes(fold(filter.trim())));
      return html`${!accounts.length && html`<${Empty}><p>${text.noAccounts}</p><//>`}
        ${accounts.length > 10 && html`<label class="find">${text.filter} <input value=${filter} autocomplete="off" onInput=${(event) => setFilter(event.target.value)} /></label>`}
        <ul id="accounts" class="plain">${found.slice(0, SHOWN_MAX).map((one) => html`<${Account} key=${one.name} one=${one} again=${loaded.again} />`)}</ul>
        ${found.length > SHOWN_MAX && html`<p class="facts">${text.moreAccounts(found.length - SHOWN_MAX)}</p>`}`;
    }}<//>
    <h4>${text.inviteAccount}</h4>
    <p class="facts">${text.inviteAccountAbout}</p>
    <${Form} id="invite-account" button=${text.makeLink} send=${async (values) => {
      const answer = await api.inviteToRelay({
        name: values.name.trim(),
        quota: quotaOf(values),
        expires_seconds: Math.round(Number(values.days) * DAY_SECONDS),
      });
      setMade({ name: answer.name, until: when(answer.expires_at), ...(await describeLink(answer, "link")) });
      await loaded.again();
    }}>
      <label>${text.accountName} <input name="name" required maxlength="255" autocomplete="off" /></label>
      <${Quota} value=${5 * UNITS.GiB} />
      <label>${text.linkDays} <input type="number" name="days" min="1" max="366" required defaultValue="7" /></label><//>
    ${made && html`<${LinkBox} id="account-link" ...${made} about=${text.accountLink(made.name, made.until)} />`}`;
}

/** Fields of a size: a number and its unit. */
function Quota({ value }) {
  const unit = Object.keys(UNITS).findLast((name) => value >= UNITS[name]) ?? "MiB";
  return html`<label>${text.quota} <input type="number" name="quota" min="0.001" step="any" max="1048576" required defaultValue=${Number((value / UNITS[unit]).toFixed(3))} /></label>
    <label>${text.unit} <select name="unit">${Object.keys(UNITS).map((name) => html`<option value=${name} defaultSelected=${name === unit}>${name}</option>`)}</select></label>`;
}

function quotaOf({ quota, unit }) {
  return Math.max(1, Math.round(Number(quota) * UNITS[unit]));
}

function Account({ one, again }) {
  return html`<li data-account=${one.name}>
    <strong><bdi>${one.name}</bdi></strong> <span class="facts">${text.nodesOf(one.nodes.length, one.connected, one.links)}</span>
    <p class=${one.used > 0.9 * one.quota ? "alarm note" : "facts"}><label>${text.quotaUsed(bytes(one.used), bytes(one.quota))} <meter min="0" max="1" high="0.9" value=${one.used / one.quota}></meter></label></p>
    ${one.circuit_bytes > 0 && html`<p class="facts">${text.circuitsToday(one.circuits, bytes(one.circuit_bytes))}</p>`}
    <details class="more"><summary>${text.change}</summary>
      <${Form} class="form inline" button=${text.save_} keep send=${async (values) => {
        await api.changeRelayAccount({ account: one.name, quota: quotaOf(values) });
        await again();
        tell(text.quotaChanged(one.name));
      }}><${Quota} value=${one.quota} /><//>
      ${one.nodes.map((node) => html`<p class="id">${node}</p>`)}
      <${Action} class="danger" label=${text.revokeAccount(one.name)} question=${text.revokeAccountQuestion(one.name)} act=${async () => {
        await api.revokeRelayAccount({ account: one.name });
        await again();
        tell(text.accountRevoked(one.name));
      }}>${text.revoke}<//>
    </details>
  </li>`;
}

function Visitors({ relay }) {
  const shown = relay.visitors.filter((one) => one.size || one.connected || one.circuit_bytes);
  return html`<h3>${text.visitorsTitle}</h3>
    ${!shown.length && html`<${Empty}><p>${text.noTopics}</p><//>`}
    ${shown.length > 0 && html`<table id="visitors"><thead><tr>${text.visitorColumns.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
      <tbody>${shown.map((one) => html`<tr><th scope="row">${text.visitorKinds[one.kind]}</th><td>${one.connected}</td><td>${bytes(one.size)}</td><td>${one.circuits} · ${bytes(one.circuit_bytes)}</td></tr>`)}</tbody></table>`}`;
}

function Refusals({ refusals }) {
  if (!refusals.length) return html`<p class="good">${text.refusedNothing}</p>`;
  return html`<ul id="refusals" class="plain">${refusals.slice(0, SHOWN_MAX).map((one) => html`<li>
    <strong>${text.refusedThing(one.what, one.kind, one.count)}</strong>
    <p>${text.refusedBecause(one.what, one.reason)}</p>
    <p class="facts">${text.refusedLast(when(one.last_at))}</p></li>`)}</ul>`;
}

function Topics() {
  const loaded = useLoaded(() => api.listRelayedTopics(), [], true);
  return html`<${Loaded} of=${loaded} lines=${1}>${(relay) => html`
    ${!relay.topics.length && html`<${Empty}><p>${text.noTopics}</p><//>`}
    <ul class="plain">${relay.topics.slice(0, SHOWN_MAX).map((topic) => html`<li key=${topic.topic}><span class="id">${short(topic.topic)}</span>
      <span class="facts">${text.commits(topic.commits)} · ${bytes(topic.size)} · ${when(topic.touched_at)}</span>
      <${Action} class="quiet" act=${() => (topic.pinned ? api.unpinTopic({ topic: topic.topic }) : api.pinTopic({ topic: topic.topic })).then(loaded.again)}>${topic.pinned ? text.unpin : text.pin}<//></li>`)}</ul>
    <h3>${text.allowedPeers}</h3>
    <p class="facts">${text.allowAbout}</p>
    <${Form} class="form inline" button=${text.allow} send=${async ({ peer }) => {
      await api.allowPeer({ peer: peer.trim() });
      await loaded.again();
    }}><label>${text.nodeId} <input name="peer" required maxlength="128" autocomplete="off" /></label><//>
    ${relay.allowed.length > 0 && html`<ul class="plain">${relay.allowed.map((peer) => html`<li><span class="id">${short(peer)}</span>
      <${Action} class="quiet" act=${() => api.denyPeer({ peer }).then(loaded.again)}>${text.deny}<//></li>`)}</ul>`}`}<//>`;
}
