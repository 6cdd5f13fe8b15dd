// One row of the posts: a post with its files, or a line on what a commit did.

import { Face, Icon } from "../parts/face.js";
import { clock, cut, dayName, dayOf, short, when, whenExactly } from "../parts/format.js";
import { documentOf, filesOf, hasPanel } from "../parts/groups.js";
import { html } from "../parts/html.js";
import { Markdown } from "../parts/markdown.js";
import { addressOf, current, go, isMine, me, repos } from "../state/node.js";
import { text } from "../strings/text.js";
import { Component } from "../vendor/preact.js";
import { Attachments } from "./attachments.js";
import { PostTools, Relation, goneNote } from "./post_actions.js";
import { ThreadLine } from "./thread.js";

const LONG = 700; // characters or
const LONG_LINES = 14; // lines that are shown before a row is cut
const TOUCH = matchMedia("(pointer: coarse)");
const [WHO, BY] = ["\u0001", "\u0002"]; // places of names in a sentence: no name has such a character
const PLACES = /([\u0001\u0002])/;
const SIGNS = { text: "text", set: "list", dict: "sheet", json: "sheet", carried: "merge", merge: "merge", fork: "split", files: "clip" };

/** Drawn again only if something of it changed: there may be 2,000. */
export class Post extends Component {
  shouldComponentUpdate(next, state) {
    const names = ["row", "came", "last", "who", "name", "branch", "isReached", "isFresh", "isSince", "isNext", "day", "kept", "place", "threadKey", "isMore"];
    const [old, now] = [this.props.rows, next.rows];
    const isSame = old.length === now.length && old.every((row, at) => row === now[at]);
    return !isSame || state !== this.state || names.some((name) => next[name] !== this.props[name]);
  }

  render(props, { isWhole }) {
    const { row, who, branch, isReached, isFresh, isSince, day, came, last, reach } = props;
    const { item, isVoid, isNew } = row;
    const tab = isReached ? 0 : -1;
    const classes = [isVoid && "void", isNew && "new", isFresh && "fresh"].filter(Boolean).join(" ");
    const common = { tabindex: tab, "data-commit": props.place, "data-main": item.commit, "aria-label": text.writtenBy(who), onFocusIn: reach };
    const changed = !isVoid && (item.edits ?? item.deletes); // the post itself shows what it says now
    const isSaid = isVoid || item.text || item.files?.length || item.edits || item.deletes || item.kind === "post";
    const sign = item.edits ? "edit" : item.deletes ? "trash" : (SIGNS[documentOf(item) || item.kind] ?? "info");
    const body = isSaid && !changed ? this.post(props, tab, isWhole, common) : html`<article class="event" ...${common}>
      <${Icon} name=${sign} size="s" />
      <p><b class="who"><bdi>${who}</bdi></b> <span class="said kind">${changed ? html`<a href=${addressOf(branch, "commit", changed)} tabindex=${tab}>${item.edits ? text.editsPost : text.deletesPost}</a>` : html`<${What} item=${item} branch=${branch} tab=${tab} />`}</span> <${Time} item=${item} branch=${branch} tab=${tab} /></p></article>`;
    return html`<li class=${classes}><${Marks} day=${day} isSince=${isSince} came=${came} />${body}<${Came} changes=${last} /></li>`;
  }

  post({ rows, row, who, name, branch, isFresh, isNext, kept, thread, isMore }, tab, isWhole, common) {
    const { item, isVoid } = row;
    const isLong = item.text && (item.text.length > LONG || item.text.split("\n").length > LONG_LINES);
    const isAboutMe = !isVoid && item.mentions?.some((one) => isMine(one.user));
    const files = filesOf(row, rows);
    const id = item.origin?.author ?? item.author;
    const tap = (event) => {
      if (TOUCH.matches && !event.target.closest("a, button, summary") && !String(getSelection())) go(branch, "commit", item.commit);
    };
    const said = item.text
      ? html`<${Markdown} source=${item.text} tab=${tab} mentions=${item.mentions} />`
      : !files.length && html`<${What} item=${item} branch=${branch} tab=${tab} />`;
    return html`<article class=${`post${isNext ? " more" : ""}${isAboutMe ? " mine-mention" : ""}`} ...${common} onClick=${tap}>
      ${isNext ? html`<span class="gutter" aria-hidden="true">${clock(item.time)}</span>` : html`<${Face} id=${id} name=${name} />`}
      <div>
        <p class=${isNext ? "by unseen" : "by"}><b class="who"><bdi>${who}</bdi></b> <${Time} item=${item} branch=${branch} tab=${isNext ? -1 : tab} />
          ${isFresh && html` <span class="tag new">${text.isNewToYou}</span>`}
          ${item.edited_at !== undefined && html` <span class="facts" title=${whenExactly(item.edited_at)}>${text.edited}</span>`}</p>
        ${isVoid && html`<p class="not-counted"><span class="why-line">${text.voidNote} <a href=${addressOf(branch, "commit", item.commit)} tabindex=${tab}>${text.why}</a></span></p>`}
        <${Relation} item=${item} branch=${branch} tab=${tab} />
        ${!item.edits && said && html`<div class=${`said${item.text ? "" : " kind"}${isLong && !isWhole ? " short" : ""}`} dir="auto">${said}</div>`}
        ${isLong && !item.edits && html`<button type="button" class="link" tabindex=${tab} aria-expanded=${Boolean(isWhole)}
          onClick=${() => this.setState({ isWhole: !isWhole })}>${isWhole ? text.less : text.more}</button>`}
        ${files.length > 0 && html`<${Attachments} files=${files} branch=${branch} tab=${tab} />`}
        ${thread && html`<${ThreadLine} ...${thread} isMore=${isMore} branch=${branch} first=${item.commit} tab=${tab} />`}
        ${kept && html`<p class=${`kept${kept === text.keptHere ? " here" : ""}`}><${Icon} name=${kept === text.keptHere ? "laptop" : "check"} size="s" />${kept}</p>`}
      </div>
      ${!isVoid && html`<${PostTools} item=${item} repo=${current.value.repo} branch=${branch} tab=${tab} />`}
    </article>`;
  }
}

/** What stands before a row: who came or went, its day, and that all below is new. */
export function Marks({ day, isSince, came }) {
  const earlier = day ? came.filter((one) => dayOf(one.time) !== day) : came;
  return html`<${Came} changes=${earlier} />${day && html`<div class="day"><h2>${dayName(day)}</h2></div>`}
    ${earlier.length < came.length && html`<${Came} changes=${came.slice(earlier.length)} />`}${isSince && html`<p class="day fresh since">${text.newSince}</p>`}`;
}

/** A person in a line; one who may only read states no name in the repo, and knows their own. */
function called(user, name) {
  return cut(name || (isMine(user) && me.value?.name) || short(user));
}

/** Changes of members, a line each. */
export function Came({ changes }) {
  return changes.map((one) => {
    const names = { [WHO]: called(one.user, one.device_name ?? one.user_name), [BY]: called(one.author, one.author_name) };
    const said = text.memberChanges[one.kind]?.(WHO, BY, text.permissions[one.permission] ?? "", cut(one.earlier_name ?? one.friends.map((id, at) => called(id, one.friend_names[at])).join(", ")));
    return said && html`<div class="event came" key=${one.commit}><${Icon} name="person" size="s" /><p>${said.split(PLACES).map((part) => (names[part] ? html`<b><bdi>${names[part]}</bdi></b>` : part))} <span class="when" title=${whenExactly(one.time)}>${when(one.time)}</span></p></div>`;
  });
}

function Time({ item, branch, tab }) {
  return html`<a class="when" href=${addressOf(branch, "commit", item.commit)} tabindex=${tab} title=${whenExactly(item.time)}><time datetime=${whenExactly(item.time)}>${clock(item.time)}</time></a>`;
}

/** What a commit without a text did, with the way to what it changed. */
export function What({ item, branch, tab }) {
  const gone = goneNote(item);
  if (gone) return gone;
  if (item.edits || item.deletes) return null; // the relation says it
  if (item.damaged) return text.damagedHere(text.kinds[item.kind] ?? item.kind);
  if (item.not_kept) return text.notKept(text.kinds[item.kind] ?? item.kind);
  if (item.erased) return text.erased(text.kinds[item.kind] ?? item.kind);
  if (item.unreadable) return text.unreadable(text.kinds[item.kind] ?? item.kind);
  const panel = documentOf(item);
  const said = ofOther(item) ?? text.did[item.kind] ?? text.kinds[item.kind] ?? item.kind;
  if (!hasPanel(panel)) return said;
  return html`<a href=${addressOf(branch, panel, item.document)} tabindex=${tab}>${said}</a>`;
}

/** The branch that a merge or a fork's first commit names, if it is here. */
function ofOther(item) {
  const named = (item.merged ?? item.continues)?.branch;
  const repo = named && (repos.value ?? []).find((one) => one.branches.some(({ branch }) => branch === named));
  if (!repo) return null;
  const name = `${repo.name} : ${repo.branches.find(({ branch }) => branch === named).name}`;
  return item.merged ? text.mergedFrom(name) : text.continues(name);
}
