// Registers the service worker that keeps the page's own files. A browser that has none, or refuses it, goes without.

import { effect } from "../vendor/signals.js";
import { session } from "./session.js";

const WORKER = "/service-worker.js";
const AFTER_MS = 2000; // what the person came for goes first

let isAsked = false;

effect(() => {
  if (session.value !== "open" || isAsked || !navigator.serviceWorker) return;
  isAsked = true;
  setTimeout(() => navigator.serviceWorker.register(address()).catch(() => {}), AFTER_MS);
});

/** The policy of the page lets no other text be the address of a script. */
function address() {
  if (!window.trustedTypes) return WORKER;
  return trustedTypes.createPolicy("ravel", { createScriptURL: () => WORKER }).createScriptURL("");
}
