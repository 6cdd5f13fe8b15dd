// Histories of other systems: JSON Lines are read here, git and Scuttlebutt by commands on the node's machine.

import { RavelError } from "../client/ravel.js";
import { Form } from "../parts/form.js";
import { html } from "../parts/html.js";
import { refresh } from "../state/node.js";
import { api, tell } from "../state/session.js";
import { text } from "../strings/opened.js";
import { useEffect, useRef, useState } from "../vendor/preact-hooks.js";

const BATCH_COUNT = 500; // items of one request
const BATCH_SIZE = 2 ** 20; // characters of one request, about
const LINE_SIZE_MAX = 2 * 2 ** 20; // characters

export function Import({ repo, branch }) {
  const [done, setDone] = useState("");
  const stop = useRef(new AbortController());
  useEffect(() => () => stop.current.abort(), []);
  const send = async ({ file, source }) => {
    const { signal } = stop.current;
    const sum = { imported: 0, already: 0 };
    const known = source.trim() || file.name.replace(/\.gz$/, "");
    try {
      for await (const items of batchesOf(linesOf(file, signal), file.name)) {
        const part = await api.importCommits({ branch: branch.branch, items, source: known }, { signal });
        sum.imported += part.imported;
        sum.already += part.already;
        setDone(text.importedSoFar(sum.imported, sum.already));
      }
    } finally {
      setDone("");
    }
    await refresh();
    tell(text.importDone(sum.imported, sum.already));
  };
  return html`<p>${text.importAbout(branch.name)}</p>
    <${Form} id="import" button=${text.import} send=${send}>
      <label>${text.importFile} <input type="file" name="file" required accept=".jsonl,.ndjson,.gz" /></label>
      <label>${text.importSource} <input name="source" maxlength="255" autocomplete="off" placeholder=${text.importSourceHint} /></label><//>
    <p class="facts" role="status">${done}</p>
    <p>${text.importElsewhere}</p>
    <ul class="plain">${text.importCommands(quoted(repo.name), quoted(`${repo.name}:${branch.name}`)).map((command) => html`<li><code>${command}</code></li>`)}</ul>`;
}

/** A name as a shell takes it. */
function quoted(name) {
  return /^[\w.:-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`;
}

function unreadable(said) {
  return new RavelError("bad_input", said);
}

/** The lines of a file, one after the other, unpacked where its name ends in .gz. Throws RavelError. */
async function* linesOf(file, signal) {
  let stream = file.stream();
  if (file.name.endsWith(".gz")) stream = stream.pipeThrough(new DecompressionStream("gzip"), { signal });
  const reader = stream.pipeThrough(new TextDecoderStream("utf-8", { fatal: true }), { signal }).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read().catch((error) => {
      throw error.name === "AbortError" ? error : unreadable(text.fileUnreadable(file.name));
    });
    if (done) break;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    if (rest.length > LINE_SIZE_MAX) throw unreadable(text.lineTooLong(file.name));
    yield* lines;
  }
  yield rest;
}

/** Items of lines, as many at once as one request takes. */
async function* batchesOf(lines, name) {
  let [items, size, number] = [[], 0, 0];
  for await (const line of lines) {
    number += 1;
    if (!line.trim()) continue;
    items.push(itemOf(line, name, number));
    size += line.length;
    if (items.length === BATCH_COUNT || size > BATCH_SIZE) {
      yield items;
      [items, size] = [[], 0];
    }
  }
  if (items.length) yield items;
}

function itemOf(line, name, number) {
  try {
    const { id, parents, author, time, text: said } = JSON.parse(line);
    if (id !== undefined) return { id, parents, author, time, text: said };
  } catch {
    // as below
  }
  throw unreadable(text.lineUnreadable(name, number));
}
