// Templates without a build step: htm turns them into Preact's nodes, in which every text stays text.

import htm from "../vendor/htm.js";
import { h } from "../vendor/preact.js";

export const html = htm.bind(h);
