// The texts of the page with those of views that are loaded when they are opened: these views have them from here.

import { text as ofPage } from "./text.js";

const LANGUAGES = {
  en: () => Promise.all([import("./en_branches.js"), import("./en_joining.js"), import("./en_node.js"), import("./en_people.js")]),
  de: () => Promise.all([import("./de_branches.js"), import("./de_joining.js"), import("./de_node.js"), import("./de_people.js")]),
};

const [{ ofBranches }, { ofJoining }, { ofNode }, { ofPeople }] = await LANGUAGES[ofPage.language]();

export const text = { ...ofPage, ...ofBranches, ...ofJoining, ...ofNode, ...ofPeople };
