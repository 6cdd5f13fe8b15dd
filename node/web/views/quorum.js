// Who must approve checkpoints and removals, and what waits for approval.

import { Action, Empty, Form, Loaded, useLoaded } from "../parts/form.js";
import { short } from "../parts/format.js";
import { html } from "../parts/html.js";
import { may, members, refresh } from "../state/node.js";
import { api, tell } from "../state/session.js";
import { text } from "../strings/opened.js";

export function Quorum({ repo, branch }) {
  const loaded = useLoaded(() => api.showQuorum({ repo: repo.repo }), [repo.repo]);
  const again = loaded.again;
  return html`<p>${text.quorumAbout}</p>
    <${Loaded} of=${loaded}>${({ council, quorums, proposals }) => html`
      ${council && html`<p id="council">${text.council(council.threshold)}
        <span class="facts">${namesOf(council)}</span></p>`}
      ${!council && !quorums.length && html`<${Empty}><p>${text.noQuorum}</p><//>`}
      <ul class="plain">${quorums.map((one) => html`<li key=${one.quorum}>${text.quorum(one.threshold, one.signers.length, one.removals)}
        <p class="facts">${namesOf(one)}</p></li>`)}</ul>
      ${quorums.length > 0 && branch && may(repo, "write") && html`<${Action} id="propose" act=${async () => {
        await api.proposeCheckpoint({ branch: branch.branch });
        await again();
        tell(text.proposed);
      }}>${text.proposeCheckpoint(branch.name)}<//>`}
      ${proposals.length > 0 && html`<h3>${text.proposals}</h3><ul id="proposals" class="plain">${proposals.map((one) => html`<${Proposal} key=${one.proposal} repo=${repo} one=${one} again=${again} />`)}</ul>`}`}<//>
    ${may(repo, "admin") && html`<details><summary>${text.setQuorum}</summary>
      <${Form} id="quorum" button=${text.save_} keep send=${async (_, form) => {
        const data = new FormData(form);
        await api.setQuorum({
          repo: repo.repo,
          signers: data.getAll("signer"),
          threshold: Number(data.get("threshold")),
          removals: data.has("removals"),
        });
        await again();
      }}>
        <fieldset><legend>${text.signers}</legend>${(members.value ?? []).map((one) => html`<label class="check">
          <input type="checkbox" name="signer" value=${one.user} /> <bdi>${one.name || short(one.user)}</bdi></label>`)}</fieldset>
        <label>${text.threshold} <input name="threshold" type="number" min="1" max="64" defaultValue="1" required /></label>
        <label class="check"><input type="checkbox" name="removals" /> ${text.removalsToo}</label><//></details>`}`;
}

function namesOf({ signers, signer_names: names }) {
  return names.map((name, index) => name || short(signers[index])).join(", ");
}

function Proposal({ repo, one, again }) {
  const { keeps } = one; // of a removal: the permission that is left; null: none
  const role = keeps && text.permissions[keeps];
  const name = one.user_name || short(one.user);
  const what = one.kind === "removal" ? text.proposedRemoval(name, role) : text.proposedCheckpoint;
  const question = keeps ? text.lowerQuestion(name, role, repo.name) : text.excludeQuestion(name, repo.name);
  const at = { repo: repo.repo, proposal: one.proposal };
  return html`<li>${what} <span class="facts">${text.proposalStates[one.state]}${one.missing ? ` · ${text.missing(one.missing)}` : ""} · <bdi>${one.author_name || short(one.author)}</bdi></span>
    ${one.state === "open" && html` <${Action} act=${() => api.approveProposal(at).then(again)}>${text.approve}<//>`}
    ${one.state === "approved" && one.kind === "checkpoint" && html` <${Action} act=${() => api.makeCheckpoint(at).then(again)}>${text.makeCheckpoint}<//>`}
    ${one.state === "approved" && one.kind === "removal" && may(repo, "admin") && html` <${Action} class="danger" question=${question} act=${async () => {
      await api.removeMember({ repo: repo.repo, user: one.user, ...(keeps && { keeps }) });
      await refresh();
      await again();
    }}>${text.doRemoval(role)}<//>`}</li>`;
}
