// A new repo, and repos of others: by an invitation or by a link for readers.

import { Form } from "../parts/form.js";
import { html } from "../parts/html.js";
import { go, refresh, repos } from "../state/node.js";
import { api, dismiss, tell } from "../state/session.js";
import { wanted } from "../state/timeline.js";
import { text } from "../strings/text.js";
import { useRef } from "../vendor/preact-hooks.js";
import { Asked } from "./requests.js";
import { Scan } from "./scan.js";

export function NewRepo() {
  return html`<p>${text.newRepoAbout}</p>
    <${Form} id="new-repo" button=${text.create} send=${async ({ name }) => {
      const made = await api.createRepo({ name: name.trim() });
      wanted.value = { branch: await open(made.repo), writes: true };
      tell(text.created(made.name));
    }}><label>${text.nameOfRepo} <input data-first name="name" required maxlength="255" autocomplete="off" /></label><//>`;
}

export function JoinRepo() {
  const field = useRef(null);
  const send = async ({ link, follow }) => {
    const said = link.replace(/[\s\p{Cf}]/gu, ""); // as mail and chats break it, with the invisible marks that they add
    const isInvitation = /^ravel:(invite|ask):/.test(said);
    const made = isInvitation
      ? await api.joinRepo({ invitation: said, follow: Boolean(follow) })
      : await api.followRepo({ capability: said });
    if (said.startsWith("ravel:ask:")) await refresh();
    else await open(made.repo);
    if (said.startsWith("ravel:ask:")) tell(text.asked(made.name));
    else if (isInvitation && !follow) tellWhenJoined(made);
    else tell(text.following(made.name));
  };
  return html`<${Asked} />
    <p>${text.joinAbout}</p>
    <${Scan} found=${(link) => { field.current.value = link; field.current.focus(); }} />
    <${Form} id="join-repo" button=${text.join} send=${send}>
      <label>${text.link} <textarea ref=${field} data-first name="link" rows="4" required maxlength="32768" spellcheck="false" placeholder=${text.linkHint}></textarea></label>
      <label class="check"><input type="checkbox" name="follow" /> ${text.followToo}</label>
    <//>`;
}

/** Says that a repo is being joined, until its members are known here. */
function tellWhenJoined({ repo: id, name }) {
  const key = tell(text.joining(name));
  const stop = repos.subscribe((all) => {
    const repo = all?.find((one) => one.repo === id);
    if (repo?.permission === "joining") return;
    if (repo) {
      dismiss(key);
      tell(text.joined(name));
    }
    queueMicrotask(() => stop());
  });
}

async function open(id) {
  await refresh();
  const repo = repos.value.find((one) => one.repo === id);
  const branch = repo?.branches[0]?.branch ?? id;
  go(branch);
  return branch;
}
