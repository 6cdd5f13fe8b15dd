// Tokens with which apps and pages use this node: make, list and revoke them.

import { Action, Empty, Form, LinkBox, Loaded, useLoaded } from "../parts/form.js";
import { when } from "../parts/format.js";
import { html } from "../parts/html.js";
import { repos } from "../state/node.js";
import { api, isPerson, ownToken, tell } from "../state/session.js";
import { text } from "../strings/opened.js";
import { useState } from "../vendor/preact-hooks.js";

const ACTIONS = ["read", "write", "manage", "admin", "node", "metrics"];
const DAY_SECONDS = 86_400;

export function Tokens() {
  if (!isPerson.value) return html`<${Empty}><p>${text.tokensForPersons}</p><//>`;
  return html`<${List} />`;
}

function List() {
  const loaded = useLoaded(() => api.listTokens(), [], true);
  const [made, setMade] = useState(null);
  const row = (one) => html`<${Token} key=${`${one.name} ${one.created_at}`} one=${one} again=${loaded.again} />`;
  return html`<p>${text.tokensAbout}</p>
    ${made && html`<${LinkBox} id="new-token" link=${made.token} about=${text.tokenMade(made.name)} />`}
    <${Loaded} of=${loaded}>${({ tokens }) => html`
      ${tokens.every(isPage) && html`<${Empty}><p>${text.noTokens}</p><//>`}
      <ul id="tokens" class="plain">${tokens.filter((one) => !isPage(one)).map(row)}</ul>
      ${tokens.some(isPage) && html`<details class="fold" id="pages"><summary>${text.pagesOf(tokens.filter(isPage).length)}</summary><ul class="plain">${tokens.filter(isPage).map(row)}</ul></details>`}`}<//>
    <h3>${text.newToken}</h3>
    <${Form} id="make-token" button=${text.create} send=${async (values, form) => {
      const chosen = (name) => [...form.querySelectorAll(`[name=${name}]:checked`)].map((box) => box.value);
      const done = await api.createToken({
        name: values.name.trim(),
        actions: chosen("actions"),
        repos: chosen("repo"),
        expires_seconds: Math.round(Number(values.days) * DAY_SECONDS),
      });
      setMade(done);
      await loaded.again();
    }}>
      <label>${text.tokenName} <input data-first name="name" required maxlength="64" pattern="[A-Za-z0-9][A-Za-z0-9._\\-]*" title=${text.tokenNameHint} autocomplete="off" /></label>
      <fieldset><legend>${text.tokenMay}</legend>${ACTIONS.map((action) => html`<label class="check">
        <input type="checkbox" name="actions" value=${action} defaultChecked=${action === "read"} /> ${text.tokenActions[action]}${text.tokenActionsAlone[action] ? ` (${text.tokenActionsAlone[action]})` : ""}</label>`)}</fieldset>
      ${repos.value?.length > 0 && html`<fieldset><legend>${text.tokenRepos}</legend>${repos.value.map((repo) => html`<label class="check">
        <input type="checkbox" name="repo" value=${repo.repo} /> <bdi>${repo.name}</bdi></label>`)}</fieldset>`}
      <label>${text.tokenDays} <input type="number" name="days" min="1" max="3650" required defaultValue="90" /></label><//>`;
}

/** Whether a token is of a page, this one or another: each tab leaves one behind when it is closed. */
function isPage({ kind }) {
  return kind === "page";
}

function Token({ one, again }) {
  const isOwn = one.name === ownToken.value;
  const places = [...one.repos, ...one.branches].map((place) => place.name ?? text.gone);
  return html`<li class="token">
    <strong><bdi>${one.name}</bdi></strong> <span class="facts">${text.tokenKinds[one.kind] ?? one.kind}${isOwn ? `, ${text.thisPage}` : ""}</span>
    <p class="facts">${one.actions.length === ACTIONS.length ? text.tokenMayAll : one.actions.map((action) => text.tokenActions[action] ?? action).join("; ")}${places.length ? ` · ${places.join(", ")}` : ""}${one.origins.length ? ` · ${text.tokenOrigins(one.origins.join(", "))}` : ""}</p>
    <p class=${one.expired || one.revoked ? "alarm note" : "facts"}>${one.revoked ? text.tokenRevoked : one.expired ? text.tokenExpired(when(one.expires_at)) : text.tokenTimes(when(one.expires_at), one.last_used_at ? when(one.last_used_at) : "")}</p>
    <${Made} things=${one.made} />
    <${Revoke} one=${one} question=${text.revokeQuestion(one.name)} revoke=${async (made) => {
      const answer = await api.revokeToken({ token: one.name, made });
      await again();
      return answer;
    }} />
  </li>`;
}

/** What was made with a token or a paired browser, and stays when that is revoked alone. */
export function Made({ things }) {
  const standing = things.filter((one) => !one.ended);
  return standing.length > 0 && html`<details class="more"><summary>${text.madeWithIt(standing.length)}</summary>
    <ul class="plain">${standing.map((one) => html`<li class="facts">${text.madeKinds[one.kind] ?? one.kind}${one.begun ? ` ${text.mayBeThere}` : ""}
      ${one.repo_name && html` · <bdi>${one.repo_name}</bdi>`} <span class="id">${one.what.slice(0, 16)}</span> · ${when(one.made_at)}</li>`)}</ul></details>`;
}

/** Revokes a token or a paired browser; where anything was made with it, that too, if it is wanted. */
export function Revoke({ one, question, revoke }) {
  const end = (made) => async () => {
    const left = (await revoke(made)).made.filter((thing) => thing.advice);
    tell(left.length ? text.revokedBut(one.name, left.map((thing) => thing.advice).join("; ")) : text.revoked(one.name));
  };
  return html`<div class="buttons">
    <${Action} class="danger" label=${text.revokeToken(one.name)} question=${question} act=${end(false)}>${text.revoke}<//>
    ${one.made.some((thing) => !thing.ended) && html`<${Action} class="danger" question=${text.revokeMadeQuestion(one.name)} act=${end(true)}>${text.revokeMade}<//>`}</div>`;
}
