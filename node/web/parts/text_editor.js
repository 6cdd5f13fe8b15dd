// A text of a Yjs document in CodeMirror, with the cursors of others. The editor's own styles need a shadow root: there they
// are a constructed style sheet, which the page's policy allows, and elsewhere an inline one, which it forbids.

const COLORS = 8;

/** Shows a text in `place` until `destroy()` of what it gives is called. `onCursor(anchor, head)` gets relative positions. */
export function openEditor({ library, place, document: shown, root, readOnly, label, onCursor }) {
  const { Y, EditorState, EditorView, keymap, defaultKeymap, drawSelection, highlightSpecialChars, yCollab, yUndoManagerKeymap } = library;
  const type = shown.getText(root);
  const shadow = place.shadowRoot ?? place.attachShadow({ mode: "open", delegatesFocus: true });
  const cursors = cursorsOf(library, type, root);
  const tell = (state) => {
    const { anchor, head } = state.selection.main;
    const encoded = (place) => Y.encodeRelativePosition(Y.createRelativePositionFromTypeIndex(type, place, -1));
    onCursor(encoded(anchor), encoded(head));
  };
  const view = new EditorView({
    parent: shadow,
    root: shadow,
    state: EditorState.create({
      doc: type.toString(),
      extensions: [
        EditorState.lineSeparator.of("\n"), // else other line ends count one less here than in the document
        EditorState.readOnly.of(readOnly),
        EditorView.editable.of(!readOnly), // else it takes keys, as far as a browser and a screen reader know
        highlightSpecialChars(),
        drawSelection(),
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ "aria-label": label, "aria-multiline": "true", "aria-readonly": String(readOnly), spellcheck: "true", tabindex: "0" }),
        EditorView.theme(THEME),
        keymap.of([...yUndoManagerKeymap, ...defaultKeymap]),
        EditorView.domEventHandlers({ keydown: (event) => event.key === "Escape" && event.stopPropagation() }), // it closes panels
        EditorView.updateListener.of((update) => (update.selectionSet || update.docChanged || update.focusChanged) && tell(update.state)),
        yCollab(type, null),
        cursors.extension,
      ],
    }),
  });
  tell(view.state);
  return {
    show: (others) => cursors.show(view, others),
    focus: () => view.focus(),
    destroy: () => {
      view.destroy();
      shadow.replaceChildren();
    },
  };
}

/** Cursors of others, and what they type, as decorations: `show(view, others)` with `{ name, color, anchor, head, typed, client, clock }`. */
function cursorsOf({ Y, Decoration, StateEffect, ViewPlugin, WidgetType }, type, root) {
  const changed = StateEffect.define();
  let others = [];

  class Caret extends WidgetType {
    constructor({ name, color }, typed) {
      super();
      this.name = name;
      this.color = color;
      this.typed = typed;
    }

    eq(other) {
      return other.name === this.name && other.color === this.color && other.typed === this.typed;
    }

    toDOM() {
      const caret = document.createElement("span");
      caret.className = `other who${this.color % COLORS}`;
      caret.setAttribute("aria-hidden", "true"); // who is here is listed beside the text
      const label = document.createElement("span");
      label.textContent = this.name;
      caret.append("\u2060", label, "\u2060");
      if (!this.typed) return caret;
      const typed = document.createElement("span");
      typed.className = "other-typed";
      typed.append(this.typed, caret);
      return typed;
    }

    ignoreEvent() {
      return true;
    }
  }

  const placeOf = (bytes, length) => {
    try {
      const position = Y.decodeRelativePosition(bytes);
      if (position.tname !== null && position.tname !== root) return null; // looking that up would add it to the document
      const found = Y.createAbsolutePositionFromRelativePosition(position, type.doc);
      return found?.type === type ? Math.min(found.index, length) : null;
    } catch {
      return null; // others may state anything
    }
  };

  /** What another has typed and nobody has saved: less what has come meanwhile. */
  const typedOf = ({ typed, client, clock }) => typed.slice(Math.max(Y.getState(type.doc.store, client) - clock, 0));

  const draw = (view) => {
    const { length } = view.state.doc;
    const ranges = [];
    for (const other of others) {
      const [anchor, head] = [placeOf(other.anchor, length), placeOf(other.head, length)];
      if (anchor === null || head === null) continue;
      if (anchor !== head) {
        const mark = Decoration.mark({ class: `other-selection who${other.color % COLORS}` });
        ranges.push(mark.range(Math.min(anchor, head), Math.max(anchor, head)));
      }
      ranges.push(Decoration.widget({ widget: new Caret(other, typedOf(other)), side: head < anchor ? -1 : 1 }).range(head));
    }
    return Decoration.set(ranges, true);
  };

  const extension = ViewPlugin.define(
    (view) => ({
      decorations: draw(view),
      update({ docChanged, transactions, view: drawn }) {
        if (docChanged || transactions.some((one) => one.effects.some((effect) => effect.is(changed)))) this.decorations = draw(drawn);
      },
    }),
    { decorations: (plugin) => plugin.decorations },
  );
  const show = (view, found) => {
    others = found;
    view.dispatch({ effects: changed.of(null) });
  };
  return { extension, show };
}

const colors = Object.fromEntries(Array.from({ length: COLORS }, (_, number) => [`.who${number}`, { "--hue": String((number * 360) / COLORS) }]));
const THEME = {
  "&": { border: "1px solid var(--line)", borderRadius: ".3rem", background: "var(--ground)", color: "var(--ink)" },
  "&.cm-focused": { outline: "3px solid var(--focus)", outlineOffset: "1px" },
  ".cm-scroller": { fontFamily: "inherit", lineHeight: "1.6", maxHeight: "60dvh", overflow: "hidden auto" },
  ".cm-content": { boxSizing: "border-box", minHeight: "14rem", padding: "1.4rem .4rem .6rem", caretColor: "var(--ink)" },
  ".cm-cursor": { borderLeftColor: "var(--ink)", borderLeftWidth: "2px" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    background: "color-mix(in srgb, var(--accent) 30%, transparent)",
  },
  ...colors,
  ".other": { position: "relative", borderLeft: "2px solid hsl(var(--hue) 65% 50%)", marginLeft: "-1px", marginRight: "-1px" },
  ".other > span": {
    position: "absolute",
    top: "-1.15em",
    left: "-2px",
    padding: "0 .3em",
    borderRadius: ".2em .2em .2em 0",
    background: "hsl(var(--hue) 60% 24%)",
    color: "#fff",
    fontSize: ".7em",
    lineHeight: "1.4",
    whiteSpace: "nowrap",
    pointerEvents: "none",
    userSelect: "none",
  },
  ".other-typed": { whiteSpace: "pre-wrap" },
  ".other-selection": { background: "hsl(var(--hue) 60% 50% / 25%)" },
};
