// Where the eye is in a list that grows at both ends, above the eye too: what one reads stays where it is.

import { useEffect, useLayoutEffect, useRef, useState } from "../vendor/preact-hooks.js";

const END_PIXELS = 40; // from the end: who is so near follows what comes
const KEPT_MAX = 8; // rows in view whose places are noted: the first of them may go

/**
 * Keeps the rows in view at their places while `drawn` changes and while rows are measured; whoever is at the end of all
 * (`isLast`) stays there. By hand, since browsers let go at the very top, and one of them does nothing. Gives `toEnd()`.
 */
export function useEye({ scroller, list, isLast, drawn, of }) {
  const isAtEnd = useRef(true);
  const noted = useRef([]); // `{ row, top }` of rows in view, in pixels from the start of all
  useEffect(() => {
    isAtEnd.current = true;
  }, [of]);
  const note = () => {
    const place = scroller.current;
    const { top, bottom } = place.getBoundingClientRect();
    noted.current = [];
    for (const row of list.current.children) {
      const box = row.getBoundingClientRect();
      if (box.bottom <= top) continue;
      if (box.top >= bottom || noted.current.length === KEPT_MAX) break;
      noted.current.push({ row, top: box.top - top + place.scrollTop });
    }
  };
  const keep = () => {
    const place = scroller.current;
    if (!place || !list.current) return;
    if (isAtEnd.current && isLast()) {
      place.scrollTop = place.scrollHeight;
    } else {
      const first = noted.current.find(({ row }) => row.isConnected);
      const moved = first ? first.row.getBoundingClientRect().top - place.getBoundingClientRect().top + place.scrollTop - first.top : 0;
      if (moved) place.scrollTop += moved;
    }
    note();
  };
  useLayoutEffect(keep, [drawn]);
  useEffect(() => {
    const [place, all] = [scroller.current, list.current];
    if (!all) return undefined;
    const look = () => {
      if (!list.current) return; // the view is gone, and hears of its last scrolling after that
      isAtEnd.current = place.scrollHeight - place.scrollTop - place.clientHeight <= END_PIXELS;
      note();
    };
    const observer = new ResizeObserver(keep); // rows are measured as they come into view, and pictures as they load
    observer.observe(all);
    observer.observe(place);
    place.addEventListener("scroll", look, { passive: true });
    return () => {
      observer.disconnect();
      place.removeEventListener("scroll", look);
    };
  }, [of, !drawn]);
  return () => {
    isAtEnd.current = true;
    keep();
  };
}

/** Which of the rows that came by themselves nobody has seen yet, by their ids in the order given: `{ above, below }`. */
export function useArrivals({ scroller, rowOf, arrived }) {
  const seen = useRef(new Set());
  const [unseen, setUnseen] = useState({ above: [], below: [] });
  const look = () => {
    const place = scroller.current?.getBoundingClientRect();
    if (!place) return;
    const next = { above: [], below: [] };
    for (const id of arrived) {
      if (seen.current.has(id)) continue;
      const row = rowOf(id)?.getBoundingClientRect();
      if (!row) continue;
      if (row.bottom <= place.top) next.above.push(id);
      else if (row.top >= place.bottom) next.below.push(id);
      else if (document.visibilityState === "visible" && place.height) seen.current.add(id);
    }
    setUnseen((before) => (String([before.above, "/", before.below]) === String([next.above, "/", next.below]) ? before : next));
  };
  const latest = useRef(look);
  latest.current = look;
  useEffect(look, [arrived]);
  useEffect(() => {
    const place = scroller.current;
    if (!place) return undefined;
    let planned = 0;
    const plan = () => {
      planned ||= requestAnimationFrame(() => {
        planned = 0;
        latest.current();
      });
    };
    place.addEventListener("scroll", plan, { passive: true });
    return () => {
      cancelAnimationFrame(planned);
      place.removeEventListener("scroll", plan);
    };
  }, [!scroller.current]);
  return unseen;
}
