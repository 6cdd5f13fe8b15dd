// What the page's text editor is made of: `make vendor` bundles these names, with all that they need, into vendor/editor.js.
export { defaultKeymap } from "@codemirror/commands";
export { EditorSelection, EditorState, StateEffect } from "@codemirror/state";
export { Decoration, EditorView, ViewPlugin, WidgetType, drawSelection, highlightSpecialChars, keymap } from "@codemirror/view";
export { yCollab, yUndoManagerKeymap } from "y-codemirror.next";
export * as Y from "yjs";
