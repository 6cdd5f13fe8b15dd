// Where one writes: a text, and files that are dropped, pasted or chosen.

import { bytes } from "../parts/format.js";
import { html } from "../parts/html.js";
import { api, attempt } from "../state/session.js";
import { text } from "../strings/en.js";
import { useEffect, useRef, useState } from "../vendor/preact-hooks.js";

const TEXT_MAX = 262_144; // characters; the node counts bytes and refuses what is over
const FILES_MAX = 100; // at once
const PREVIEW_SIZE_MAX = 32 * 2 ** 20; // bytes of a picture that is shown before it is sent
const drafts = new Map(); // branch -> text that was not sent

/** What a picture looks like before it is attached. It is of this machine, and no script can be in it. */
function Preview({ file }) {
  const [address, setAddress] = useState("");
  useEffect(() => {
    if (!/^image\/(png|jpeg|gif|webp|avif)$/.test(file.type) || file.size > PREVIEW_SIZE_MAX) return undefined;
    const made = URL.createObjectURL(file);
    setAddress(made);
    return () => URL.revokeObjectURL(made);
  }, [file]);
  return address && html`<img src=${address} alt="" />`;
}

export function Compose({ repo, branch }) {
  const id = branch.branch;
  const area = useRef(null);
  const chooser = useRef(null);
  const [files, setFiles] = useState([]);
  const [doing, setDoing] = useState("");
  const [isOver, setOver] = useState(false);
  const attach = (list) => setFiles((before) => [...before, ...list].slice(0, FILES_MAX));

  const send = async (event) => {
    event?.preventDefault();
    const said = area.current.value;
    if (doing || (!said.trim() && !files.length)) return area.current.focus();
    await attempt(async () => {
      for (const file of files) {
        setDoing(text.attaching(file.name));
        await api.addFile({ branch: id, name: file.name, content: file }, { timeoutMs: 2 ** 31 - 1 });
        setFiles((before) => before.filter((one) => one !== file)); // what is there is not sent again
      }
      setDoing(text.working);
      if (said.trim()) await api.writePost({ branch: id, text: said, resolve_mentions: true });
      area.current.value = "";
      drafts.delete(id);
    });
    setDoing("");
    area.current?.focus();
  };
  const key = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send(event);
  };
  const paste = (event) => {
    if (!event.clipboardData?.files.length) return;
    event.preventDefault();
    attach(event.clipboardData.files);
  };
  const drop = (event) => {
    event.preventDefault();
    setOver(false);
    attach(event.dataTransfer.files);
  };
  const over = (event) => {
    event.preventDefault();
    setOver(true);
  };

  return html`<form id="write" class=${isOver ? "over" : ""} onSubmit=${send} onDragOver=${over} onDragLeave=${() => setOver(false)} onDrop=${drop}>
    <label for="text">${text.writeIn(repo.name, branch.name)}</label>
    <textarea id="text" ref=${area} rows="2" maxlength=${TEXT_MAX} defaultValue=${drafts.get(id) ?? ""} placeholder=${text.writeHint}
      onInput=${(event) => drafts.set(id, event.target.value)} onKeyDown=${key} onPaste=${paste}></textarea>
    ${files.length > 0 && html`<ul class="chosen-files">${files.map((file) => html`<li>
      <${Preview} file=${file} /><bdi>${file.name}</bdi> <span class="facts">${bytes(file.size)}</span>
      <button type="button" class="quiet" aria-label=${text.without(file.name)} onClick=${() => setFiles(files.filter((one) => one !== file))}>✕</button>
    </li>`)}</ul>`}
    <div class="buttons">
      <input type="file" id="attach" multiple hidden ref=${chooser} aria-label=${text.attach}
        onChange=${(event) => { attach(event.target.files); event.target.value = ""; }} />
      <button type="button" onClick=${() => chooser.current.click()}>${text.attach}</button>
      <span class="facts" role="status">${doing}</span>
      <button class="main" aria-busy=${Boolean(doing)} title=${text.ctrlEnter}>${text.write}</button>
    </div>
  </form>`;
}

