// The analysis report of this node: made on its machine, and shown in a frame that can do nothing.

import { Action, Loaded } from "../parts/form.js";
import { when } from "../parts/format.js";
import { html } from "../parts/html.js";
import { usePolled } from "../parts/polled.js";
import { api, isPerson } from "../state/session.js";
import { text } from "../strings/opened.js";
import { useEffect, useRef, useState } from "../vendor/preact-hooks.js";

export function Report() {
  const loaded = usePolled(() => api.showReport());
  const [path, setPath] = useState("");
  return html`<p>${text.reportAbout}</p>
    <${Loaded} of=${loaded}>${(report) => html`
      ${report.running && html`<p id="report-runs" role="status">${text.reportSteps[report.step]}</p><progress aria-label=${text.reportSteps[report.step]}></progress>`}
      ${report.error && html`<p class="error" role="status">${text.sentence(report.error)}</p>`}
      ${report.finished_at && html`<p id="report-made" class="facts">${text.reportMade(when(report.finished_at))}</p>`}
      ${isPerson.value && html`<p class="buttons">
        ${report.finished_at && html`<${Action} class="main" id="open-report" act=${async () => setPath((await api.openReport()).path)}>${text.openReport}<//>`}
        ${!report.running && html`<${Action} id="make-report" act=${async () => {
          await api.makeReport();
          await loaded.again();
        }}>${report.finished_at ? text.makeReportAgain : text.makeReport}<//>`}</p>`}
      ${report.finished_at && html`<p class="facts">${text.reportFile(report.path)}</p>`}`}<//>
    ${path && html`<${Frame} path=${path} close=${() => setPath("")} />`}`;
}

function Frame({ path, close }) {
  const dialog = useRef(null);
  useEffect(() => dialog.current.showModal(), []);
  return html`<dialog ref=${dialog} class="frame" onClose=${close} aria-label=${text.panels.report}>
    <div class="buttons"><strong>${text.panels.report}</strong> <button type="button" onClick=${() => dialog.current.close()}>${text.closeReport}</button></div>
    <iframe id="report" src=${path} sandbox="" title=${text.panels.report}></iframe>
  </dialog>`;
}
