// The page: opens the node, shows what it holds, and follows what happens. Everything that others wrote is text.

import { html } from "./parts/html.js";
import { api, begin, session } from "./state/session.js";
import "./state/news.js";
import "./state/worker.js";
import { text } from "./strings/text.js";
import { render } from "./vendor/preact.js";
import "./vendor/signals.js";
import { Away } from "./views/away.js";
import { Login } from "./views/login.js";
import { Shell } from "./views/shell.js";

function Page() {
  if (session.value === "open") return html`<${Shell} />`;
  if (session.value === "away") return html`<${Away} />`;
  return session.value === "locked" ? html`<${Login} />` : null;
}

addEventListener("hashchange", () => {
  if (!api) begin(); // a code that was opened in the locked page
});

document.documentElement.lang = text.language;

const place = document.getElementById("page");
place.replaceChildren(); // what stood there until now is no part of what is drawn
render(html`<${Page} />`, place);
begin();
