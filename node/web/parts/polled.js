// What is loaded again by itself: while the node says that work is running, or at a rate of its own.

import { useEffect } from "../vendor/preact-hooks.js";
import { useLoaded } from "./form.js";

const POLL_MS = 1000;

/** As `useLoaded`, of an answer with `running`. */
export function usePolled(load) {
  const loaded = useLoaded(load, [], true);
  useEffect(() => {
    if (!loaded.data?.running) return undefined;
    const plan = setTimeout(loaded.again, POLL_MS);
    return () => clearTimeout(plan);
  }, [loaded.data, loaded.error]);
  return loaded;
}

/** As `useLoaded`, again every so many milliseconds while the page is seen. */
export function useRepeated(load, milliseconds) {
  const loaded = useLoaded(load, [], true);
  useEffect(() => {
    const plan = setInterval(() => document.visibilityState === "visible" && loaded.again(), milliseconds);
    return () => clearInterval(plan);
  }, []);
  return loaded;
}
