// The texts of the view of a relay in the reader's language: they come with it, and not with the page.

import { text } from "./text.js";

const LANGUAGES = { en: () => import("./en_relay.js"), de: () => import("./de_relay.js") };

export const { ofRelay } = await LANGUAGES[text.language]();
