// What is loaded again every second while the node says that work is running.

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
