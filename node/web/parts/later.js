// Views whose scripts come when they are opened: a first visit does not wait for what it does not show.

import { isLive } from "../state/node.js";
import { text } from "../strings/text.js";
import { useEffect, useState } from "../vendor/preact-hooks.js";
import { Empty, Skeleton } from "./form.js";
import { html } from "./html.js";

/**
 * The component `name` of a module that `load` gives, once it is shown the first time. Until then a skeleton stands there,
 * and if it cannot be loaded, a button that tries again. `came` of what it is given is called after a load that one saw.
 */
export function later(load, name) {
  let loaded = null;
  return function Later({ came = () => {}, ...given }) {
    const [view, setView] = useState(() => loaded);
    const [isMissing, setMissing] = useState(false);
    const get = async () => {
      try {
        const [found] = await Promise.all([load(), import("../strings/opened.js")]); // its texts are asked for with it
        loaded = found[name];
      } catch (error) {
        setMissing(true);
        if (!(error instanceof TypeError)) reportError(error); // a defect of the script, and no answer that did not come
        return false;
      }
      setView(() => loaded);
      return true;
    };
    // Some browsers remember that a script did not come: with the page it is asked for anew.
    const again = async () => (await get()) || (isLive.value && location.reload());
    useEffect(() => {
      if (!view) get(); // while the node is away, too: the browser may keep it
    }, [isLive.value]);
    const wasLoaded = useState(Boolean(view))[0];
    useEffect(() => {
      if (view && !wasLoaded) came();
    }, [view]);
    if (view) return html`<${view} ...${given} />`;
    if (!isMissing) return html`<${Skeleton} lines=${5} />`;
    return html`<${Empty} id="no-view"><p class="error" role="alert">${text.noView}</p><button type="button" onClick=${again}>${text.tryNow}</button><//>`;
  };
}
