// The texts of the page in the reader's language: the first of the browser's languages that there is, else English.

const LANGUAGES = { en: () => import("./en.js"), de: () => import("./de.js") };

const wanted = (globalThis.navigator?.languages ?? []).map((one) => one.toLowerCase().split("-")[0]);

// Loaded before the page is drawn: nothing is shown in another language first.
export const { text } = await LANGUAGES[wanted.find((one) => one in LANGUAGES) ?? "en"]();
