// Numbers, sizes, times and people as texts.

import { text } from "../strings/text.js";

const WHO_MAX = 40;
const NAMES_SHOWN = 5; // of files, in one notice
const WEEKDAY_MS = 5 * 24 * 3600 * 1000; // for which a weekday alone names a day
export const ID_SHOWN = 12; // characters that stand for an id

export function bytes(size) {
  const power = Math.min(Math.floor(Math.log2(Math.max(size, 1)) / 10), 4);
  return `${(size / 1024 ** power).toFixed(power ? 1 : 0).replace(".", text.decimal)} ${["B", "KiB", "MiB", "GiB", "TiB"][power]}`;
}

/** A text as it is compared with what is typed: as the node's search does, whatever the case and the form of accents. */
export function fold(typed) {
  return typed.normalize("NFKC").toUpperCase().toLowerCase().normalize("NFKC").replace(/i\u0307/g, "i");
}

export function short(id) {
  return `${id.slice(0, ID_SHOWN)}…`;
}

/** Of this reader's clock, or null: authors may assert any number. */
export function dateOf(seconds) {
  const date = new Date(seconds * 1000);
  return Number.isNaN(date.getTime()) ? null : date;
}

/** A moment as people say it: of today the time alone, of days around it with the weekday, else with the date. */
export function when(seconds) {
  const date = dateOf(seconds);
  if (!date) return text.unknownTime;
  const now = new Date();
  if (isoDay(date) === isoDay(now)) return clock(seconds);
  const isNear = Math.abs(date - now) < WEEKDAY_MS;
  return `${text.dayShort(date, isNear, date.getFullYear() === now.getFullYear())} ${clock(seconds)}`;
}

/** The time of day alone. By hand: the browser's own formats take as long as all else of a row. */
export function clock(seconds) {
  const date = dateOf(seconds);
  return date ? `${two(date.getHours())}:${two(date.getMinutes())}` : text.unknownTime;
}

/** The day as 2026-01-31; of a time that is none, the words for that. */
export function dayOf(seconds) {
  const date = dateOf(seconds);
  return date ? isoDay(date) : text.unknownTime;
}

/** A day as people say it. */
export function dayName(day) {
  const date = new Date(`${day}T12:00:00`);
  if (Number.isNaN(date.getTime())) return day;
  const now = new Date();
  const isRecent = date.getFullYear() === now.getFullYear();
  return text.dayNamed(date, isoDay(date) === isoDay(now), isRecent);
}

function isoDay(date) {
  return `${String(date.getFullYear()).padStart(4, "0")}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

function two(number) {
  return String(number).padStart(2, "0");
}

/** The same in UTC, as all readers see it. */
export function whenExactly(seconds) {
  const date = dateOf(seconds);
  return date ? `${date.toISOString().slice(0, 16).replace("T", " ")} UTC` : text.unknownTime;
}

/** Who is shown as the author. What an importer says of one is marked: it must not pass for a member's name. */
export function whoOf(item, names) {
  const name = cut(nameIn(item, names));
  return item.imported_author ? text.imported(name) : name;
}

/** The author's name with all its letters, as a face takes it. */
export function nameIn(item, names) {
  const { author, author_name: name } = item.origin ?? item;
  return item.imported_author || names.get(author) || name || (item.origin ? author : item.person ?? item.author).slice(0, ID_SHOWN);
}

/** What a post says in one line, with names of those whom it mentions. In a name a `$` is no more than a letter. */
export function withNames({ text: said, mentions = [] }) {
  return mentions.reduce((left, { user, name }) => left.replaceAll(`@${user}`, () => `@${name || short(user)}`), said ?? "");
}

/** A name that fits a row. What tells look-alikes apart stands at its end, and stays. */
export function cut(name) {
  const mark = / \[[a-z2-7]+\]$/.exec(name)?.[0] ?? "";
  const plain = [...name.slice(0, name.length - mark.length)];
  return (plain.length > WHO_MAX ? `${plain.slice(0, WHO_MAX - 1).join("")}…` : plain.join("")) + mark;
}

/** Whether none of these addresses (`host:port`) can be dialed from another machine. */
export function isOnlyHere(addresses) {
  return addresses.every((address) => /^(127\.|localhost:|\[::1\])/.test(address));
}

/** Some names in a sentence. */
export function namesOf(names) {
  const shown = names.slice(0, NAMES_SHOWN).join(", ");
  return names.length > NAMES_SHOWN ? `${shown} ${text.andMore(names.length - NAMES_SHOWN)}` : shown;
}
