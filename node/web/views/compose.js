// Where one writes: a post, an answer or another text for a post; and files that are dropped, pasted or chosen.

import { Face, Icon } from "../parts/face.js";
import { bytes, fold, whoOf, withNames } from "../parts/format.js";
import { html } from "../parts/html.js";
import { isMine, persons } from "../state/node.js";
import { api, attempt, tell } from "../state/session.js";
import { text } from "../strings/text.js";
import { useEffect, useLayoutEffect, useRef, useState } from "../vendor/preact-hooks.js";
import { signal } from "../vendor/signals.js";

const TEXT_MAX = 262_144; // characters; the node counts bytes and refuses what is over
const FILES_MAX = 100; // at once
const PREVIEW_SIZE_MAX = 32 * 2 ** 20; // bytes of a picture that is shown before it is sent
const NAMES_MAX = 6; // people that are offered at an @
const ID = /@([a-z2-7]{52})/g;
const MENTION = /(^|[\s(])@([^\s@[\]]{0,32})$/; // before the caret
const drafts = new Map(); // branch -> text that was not sent
const added = new Map(); // branch -> commits that added files of the post that is not sent yet
const ATTACHED_MAX = 128; // commits that a post names

/** What is written about a post, instead of a post: `{ mode, item }`, `reply` or `edit`. Null: a post. */
export const about = signal(null);

/** The branch in which this page has just written a post: its reader goes to the end. */
export const written = signal("");

/** Answers or edits a post in the field at the foot. */
export function writeAbout(mode, item) {
  about.value = { mode, item };
}

/** What a picture looks like before it is attached. It is of this machine, and no script can be in it. */
function Preview({ file }) {
  const [address, setAddress] = useState("");
  useEffect(() => {
    if (!/^image\/(png|jpeg|gif|webp|avif)$/.test(file.type) || file.size > PREVIEW_SIZE_MAX) return undefined;
    const made = URL.createObjectURL(file);
    setAddress(made);
    return () => URL.revokeObjectURL(made);
  }, [file]);
  return html`<span class="kind">${address ? html`<img src=${address} alt="" />` : html`<${Icon} name="file" />`}</span>`;
}

export function Compose({ repo, branch }) {
  const id = branch.branch;
  const area = useRef(null);
  const chooser = useRef(null);
  const form = useRef(null);
  const [files, setFiles] = useState([]);
  const [doing, setDoing] = useState("");
  const [isOver, setOver] = useState(false);
  const [hasText, setHasText] = useState(Boolean(drafts.get(id)));
  const [asked, setAsked] = useState(null); // what is typed behind an @; null: no name is looked for
  const attach = (list) => setFiles((before) => [...before, ...list].slice(0, FILES_MAX));
  const of = about.value;

  useEffect(() => {
    if (!of) return;
    area.current.value = of.mode === "edit" ? textOf(of.item) : (drafts.get(id) ?? "");
    setHasText(Boolean(area.current.value));
    area.current.focus();
  }, [of]);
  useEffect(() => () => (about.value = null), []);
  useEffect(() => { // for what floats over it: style/parts.css
    const { style } = document.documentElement;
    const observer = new ResizeObserver(([{ target }]) => style.setProperty("--field", `${target.offsetHeight}px`));
    observer.observe(form.current);
    return () => {
      observer.disconnect();
      style.removeProperty("--field");
    };
  }, []);
  useLayoutEffect(() => { // as high as what is written, up to what the style allows
    area.current.style.height = "auto";
    area.current.style.height = `${area.current.scrollHeight}px`;
  });

  const end = () => {
    if (of?.mode !== "edit") drafts.delete(id);
    if (!area.current) return; // somebody went on to another view meanwhile
    about.value = null;
    area.current.value = drafts.get(id) ?? "";
    setHasText(Boolean(area.current.value));
  };
  const send = async (event) => {
    event?.preventDefault();
    const said = area.current.value;
    if (doing || (!said.trim() && !files.length)) return area.current.focus();
    await attempt(async () => {
      for (const file of files) {
        setDoing(text.attaching(file.name));
        const { commit } = await api.addFile({ branch: id, name: file.name, content: file }, { timeoutMs: 2 ** 31 - 1 });
        added.set(id, [...(added.get(id) ?? []), commit].slice(-ATTACHED_MAX));
        setFiles((before) => before.filter((one) => one !== file)); // what is there is not sent again
      }
      setDoing(text.working);
      if (said.trim()) await write(id, said, of, added.get(id) ?? []);
      added.delete(id);
      if (of?.mode !== "edit") written.value = id;
      end();
    });
    setDoing("");
    area.current?.focus();
  };
  const input = (event) => {
    if (of?.mode !== "edit") drafts.set(id, event.target.value);
    setHasText(Boolean(event.target.value.trim()));
    look();
  };
  const look = () => {
    const { value, selectionStart } = area.current;
    setAsked(MENTION.exec(value.slice(0, selectionStart))?.[2] ?? null);
  };
  const take = (member) => {
    const { value, selectionStart } = area.current;
    const start = value.slice(0, selectionStart).lastIndexOf("@");
    area.current.setRangeText(`@[${member.name}] `, start, selectionStart, "end");
    setAsked(null);
    input({ target: area.current });
    area.current.focus();
  };
  const key = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send(event);
    else if (event.key === "Escape" && asked === null && of) {
      event.stopPropagation();
      end();
    }
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
  const mention = () => {
    const { value, selectionStart } = area.current;
    area.current.setRangeText(/[^\s(]$/.test(value.slice(0, selectionStart)) ? " @" : "@", selectionStart, selectionStart, "end");
    area.current.focus();
    input({ target: area.current });
  };

  const label = of ? text[of.mode === "edit" ? "newText" : "yourReply"] : text.writeIn(repo.name, branch.name);
  const isReady = hasText || files.length > 0;
  return html`<form id="write" ref=${form} class=${isOver ? "write over" : "write"} onSubmit=${send} onDragOver=${over} onDragLeave=${() => setOver(false)} onDrop=${drop}>
    ${asked !== null && html`<${Names} asked=${asked} area=${area} take=${take} end=${() => setAsked(null)} />`}
    <div class=${of || isReady ? "box" : "box idle"}>
      ${of && html`<p class="answering"><${Icon} name=${of.mode} size="s" /><span class="grow cut">${of.mode === "edit" ? text.editing : text.answering(whoOf(of.item, new Map()))} ${withNames(of.item)}</span>
        <button type="button" class="quiet icon" aria-label=${text.cancel} onClick=${end}><${Icon} name="close" size="s" /></button></p>`}
      <textarea id="text" ref=${area} rows="1" maxlength=${TEXT_MAX} defaultValue=${drafts.get(id) ?? ""} aria-label=${label} placeholder=${label}
        onInput=${input} onKeyDown=${key} onClick=${look} onPaste=${paste}></textarea>
      ${files.length > 0 && html`<ul class="chosen chosen-files">${files.map((file) => html`<li class="doc">
        <${Preview} file=${file} /><span class="grow"><b class="cut"><bdi>${file.name}</bdi></b><span class="facts">${bytes(file.size)}</span></span>
        <button type="button" class="quiet icon" aria-label=${text.without(file.name)} onClick=${() => setFiles(files.filter((one) => one !== file))}><${Icon} name="close" size="s" /></button>
      </li>`)}</ul>`}
      <div class="row">
        <input type="file" id="attach" multiple hidden ref=${chooser} aria-label=${text.attach}
          onChange=${(event) => { attach(event.target.files); event.target.value = ""; }} />
        <button type="button" id="choose-files" class="quiet icon" aria-label=${text.attach} title=${text.attach} onClick=${() => chooser.current.click()}><${Icon} name="clip" /></button>
        <button type="button" class="quiet icon" aria-label=${text.mentionSomeone} title=${text.mentionSomeone} onClick=${mention}><${Icon} name="at" /></button>
        <span class="grow"></span>
        <span class="facts" role="status">${doing || (isReady && html`<span class="wide">${text.ctrlEnter}</span>`)}</span>
        <button class=${isReady ? "main" : ""} aria-busy=${Boolean(doing)} title=${text.ctrlEnter}><${Icon} name="send" size="s" />${of?.mode === "edit" ? text.save_ : text.write}</button>
      </div>
    </div>
  </form>`;
}

async function write(branch, said, of, attachments) {
  if (!of) return api.writePost({ branch, text: said, resolve_mentions: true, attachments });
  const request = { commit: of.item.commit, text: said, resolve_mentions: true };
  if (of.mode === "reply") return api.replyToPost({ ...request, attachments });
  const before = textOf(of.item);
  await api.editPost(request);
  return tell(text.saved, () => api.editPost({ ...request, text: before }));
}

/** A post as it is typed: people who are mentioned by their names. */
function textOf(item) {
  const names = new Map((item.mentions ?? []).map((one) => [one.user, one.name]));
  return (item.text ?? "").replace(ID, (all, id) => (names.get(id) ? `@[${names.get(id)}]` : all));
}

/** Members whose name has a word that begins so. Arrows choose, Enter and Tab take, Escape closes. */
function Names({ asked, area, take, end }) {
  const [at, setAt] = useState(0);
  const fits = ({ name }) => fold(name).split(/\s+/).some((word) => word.startsWith(fold(asked))) || fold(name).startsWith(fold(asked));
  const found = persons.value.map(([first]) => first).filter((one) => one.name && !isMine(one.user) && fits(one)).slice(0, NAMES_MAX);
  const chosen = Math.min(at, found.length - 1);
  useEffect(() => {
    const key = (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (event.ctrlKey || event.metaKey || (!found.length && event.key !== "Escape")) return;
      if (step) setAt((chosen + step + found.length) % found.length);
      else if (["Enter", "Tab"].includes(event.key)) take(found[chosen]);
      else if (event.key === "Escape") end();
      else return;
      event.preventDefault();
      event.stopPropagation();
    };
    const field = area.current;
    field.addEventListener("keydown", key, { capture: true });
    return () => field.removeEventListener("keydown", key, { capture: true });
  });
  return html`<ul class="names" id="names" role="listbox" aria-label=${text.namesThatFit}>
    ${found.map((one, index) => html`<li key=${one.user} role="option" aria-selected=${index === chosen} onMouseDown=${(event) => { event.preventDefault(); take(one); }}>
      <${Face} id=${one.user} name=${one.name} size="s" /><bdi class="grow cut">${one.name}</bdi></li>`)}
    <li class="hint" role="presentation">${found.length ? text.namesHint : text.nobodySo}</li></ul>`;
}
