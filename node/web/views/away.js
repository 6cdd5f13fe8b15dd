// What is shown while the node does not answer: instead of the page, or above it.

import { Icon } from "../parts/face.js";
import { html } from "../parts/html.js";
import { isLive } from "../state/node.js";
import { begin, lock, problem } from "../state/session.js";
import { text } from "../strings/text.js";
import { useEffect, useState } from "../vendor/preact-hooks.js";

const PATIENCE_MS = 3000; // a restart, or a laptop that wakes up, is no news

export function Away() {
  return html`<main id="away" class="login">
    <h1>${text.name}</h1>
    <div role="status"><h2>${text.away}</h2><p>${text.awayAbout}</p></div>
    <p>${text.awayHow} <code>${text.awayCommand}</code></p>
    <p class="buttons"><button type="button" class="main" onClick=${() => begin()}>${text.tryNow}</button>
      <button type="button" onClick=${() => lock()}>${text.lock}</button></p>
  </main>`;
}

/** A line above the page that was open when the node went away. */
export function Lost() {
  const [since, setSince] = useState(null);
  useEffect(() => {
    if (isLive.value) {
      setSince(null);
      return undefined;
    }
    const now = new Date();
    const plan = setTimeout(() => setSince(now), PATIENCE_MS);
    return () => clearTimeout(plan);
  }, [isLive.value]);
  if (!since || problem.value === text.errors.notRunning) return null; // it is said already
  const time = since.toLocaleTimeString("sv-SE", { hour: "2-digit", minute: "2-digit" });
  return html`<div id="lost" class="strip bad" role="status"><${Icon} name="warn" /><p>${text.lostSince(time)} <code>${text.awayCommand}</code></p></div>`;
}
