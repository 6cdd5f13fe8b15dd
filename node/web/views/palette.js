// Commands by name: Ctrl+K, a few letters, Enter.

import { Icon } from "../parts/face.js";
import { fold, withNames } from "../parts/format.js";
import { html } from "../parts/html.js";
import { INVITE, addressOf, chosenBranch, chosenRepo, current, go, hasPanel, may, members, persons, repos } from "../state/node.js";
import { actions, api, attempt, dismiss, notices, session } from "../state/session.js";
import { showInTimeline } from "../state/timeline.js";
import { text } from "../strings/text.js";
import { useEffect, useMemo, useRef, useState } from "../vendor/preact-hooks.js";
import { signal } from "../vendor/signals.js";
import { openKeys } from "./keys.js";
import { leave } from "./login.js";
import { PANELS } from "./panels.js";
import { marked } from "./search.js";

const SHOWN_MAX = 50;
const HITS = 8; // posts and files behind the commands
const LETTERS_MIN = 3; // from which on posts are looked for
const PAUSE_MS = 300; // after the last letter
/** What one does -> the panel where, the right in the repo that it needs, and an argument. */
const DEEDS = {
  exclude: ["members", "admin"],
  role: ["members", "admin"],
  rename: ["branches", "manage"],
  branch: ["branches", "manage"],
  merge: ["branches", "write"],
  archive: ["branches", "manage"],
  compact: ["branches", "manage"],
  import: ["branches", "write"],
  read: ["about", "admin"],
  copy: ["about", "read"],
  leave: ["about", "read"],
  forget: ["about"],
  attach: ["files", "write"],
  name: ["people"],
  device: ["devices"],
  lost: ["devices"],
  phone: ["browsers"],
  stay: ["browsers"],
  save: ["backup"],
  words: ["backup"],
  restore: ["backup", "", "restore"],
  notify: ["settings"],
  dark: ["settings"],
  uninstall: ["settings"],
};
const isOpen = signal(false);

export function openPalette() {
  if (session.value === "open") isOpen.value = true;
}

export function Palette() {
  return isOpen.value ? html`<${Open} />` : null;
}

function Open() {
  const dialog = useRef(null);
  const [asked, setAsked] = useState("");
  const [at, setAt] = useState(0);
  useEffect(() => dialog.current.showModal(), []);
  const all = useMemo(commands, [repos.value, members.value, chosenBranch.value, session.value]);
  const hits = useHits(asked.trim());
  const words = fold(asked).split(/\s+/);
  const found = all.filter(({ name, also = "", isDeed }) => (asked || !isDeed) && words.every((word) => fold(`${name} ${also}`).includes(word))).slice(0, SHOWN_MAX);
  found.push(...hits);
  if (asked.trim() && (hits.length || !found.length)) found.push({ name: text.goSearch(asked.trim()), icon: "search", run: () => go(chosenBranch.value, "search", asked.trim()) });
  const chosen = Math.min(at, found.length - 1);
  const run = (command) => {
    dialog.current.close();
    command?.run();
  };
  const key = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      setAt((chosen + step + found.length) % Math.max(found.length, 1));
    } else if (event.key === "Enter") {
      event.preventDefault();
      run(found[chosen]);
    }
  };
  useEffect(() => dialog.current.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" }), [chosen]);
  return html`<dialog ref=${dialog} id="palette" aria-label=${text.commands} onClose=${() => (isOpen.value = false)}>
    <div class="ask-line"><${Icon} name="search" /><input id="command" type="text" role="combobox" aria-expanded="true" aria-controls="found" aria-autocomplete="list" autocomplete="off"
      aria-activedescendant=${found.length ? `command-${chosen}` : undefined} aria-label=${text.commandHint} placeholder=${text.commandHint}
      onInput=${(event) => { setAsked(event.target.value); setAt(0); }} onKeyDown=${key} /><kbd>${text.escape}</kbd></div>
    <ul id="found" class="hits" role="listbox" aria-label=${text.commands}>
      ${found.map((command, index) => html`<li id=${`command-${index}`} role="option" aria-selected=${index === chosen}
        onClick=${() => run(command)}><${Icon} name=${command.icon ?? "arrow"} /><bdi class="grow cut">${marked(command.name, asked)}</bdi>${command.where && html`<span class="facts cut">${command.where}</span>`}</li>`)}
    </ul>
  </dialog>`;
}

/** Posts and files with the words that are typed, behind the commands: one field finds and does. */
function useHits(asked) {
  const [hits, setHits] = useState([]);
  useEffect(() => {
    setHits([]);
    if ([...asked].length < LETTERS_MIN) return undefined;
    let isEnded = false;
    const look = async () => {
      const found = await api.search({ text: asked, limit: HITS }).catch(() => ({ hits: [] })); // what is no query has no hits
      if (isEnded) return;
      setHits(found.hits.map((hit) => ({
        name: hit.text === null ? hit.files.join(", ") : withNames(hit), where: `${hit.repo_name} / ${hit.branch_name}`, icon: hit.files?.length ? "file" : "thread", run: () => open(hit),
      })));
    };
    const timer = setTimeout(look, PAUSE_MS);
    return () => {
      isEnded = true;
      clearTimeout(timer);
    };
  }, [asked]);
  return hits;
}

function open({ branch, commit, texts }) {
  if (texts?.length) return go(branch, "text", texts[0].root);
  go(branch);
  return showInTimeline(branch, commit);
}

function commands() {
  const to = (address) => () => (location.hash = address);
  const list = [{ name: text.goWrite, also: text.alsoCalledOf.write, icon: "edit", run: write }];
  const last = notices.value.findLast((one) => one.undo);
  if (last) list.push({ name: text.undoThis(last.said), run: () => { dismiss(last.key); attempt(last.undo); } });
  const here = chosenBranch.value || chosenRepo.value;
  const { repo } = current.value;
  if (may(repo, "admin")) list.push({ name: text.inviteTo(repo.name), icon: "invite", run: to(addressOf(here, "members", INVITE)) });
  const isOffered = (name, { needs, action = "read" } = PANELS[name]) =>
    !["commit", "person"].includes(needs) && !(needs && !here) && actions.value.includes(action) && hasPanel(name);
  for (const name of Object.keys(PANELS).filter((one) => isOffered(one))) {
    list.push({ name: text.panels[name], also: text.alsoCalledOf[name], icon: PANELS[name].icon, run: to(addressOf(here, name)) });
  }
  for (const [deed, [panel, right, argument]] of Object.entries(DEEDS)) {
    if (!isOffered(panel) || (right && !may(repo, right))) continue;
    const [name, also] = text.deeds[deed];
    list.push({ name, also, where: text.panels[panel], icon: PANELS[panel].icon, isDeed: true, run: to(addressOf(here, panel, argument)) });
  }
  for (const [one] of persons.value) {
    if (one.name) list.push({ name: one.name, where: current.value.repo?.name, icon: "person", run: to(addressOf(here, "person", one.user)) });
  }
  for (const repo of repos.value ?? []) {
    for (const branch of repo.branches) {
      list.push({ name: text.goBranch(repo.name, branch.name), icon: "thread", run: () => show(branch.branch) });
    }
  }
  list.push({ name: text.keyboard, also: text.alsoCalledOf.keys, icon: "info", run: openKeys });
  list.push({ name: text.lock, also: text.alsoCalledOf.lock, icon: "out", run: leave });
  return list;
}

function show(branch) {
  location.hash = addressOf(branch);
  showInTimeline(branch);
}

function write() {
  location.hash = addressOf(chosenBranch.value);
  setTimeout(() => document.getElementById("text")?.focus(), 0); // after the view was drawn
}
