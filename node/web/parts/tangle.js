// The tangle of some commits: lanes, and the lines between commits and what they follow.

import { html } from "./html.js";

const LANES_MAX = 12;
const LANE_WIDTH = 14;
const NODE_Y = 19;

/**
 * Lanes for items in falling order, effects before causes: each waits in a lane for the first of its acks, and in
 * further lanes for the others. Gives for each item its own lane and lines as [from, to]: `above` end at it, `below`
 * begin at it, `past` lead by.
 */
export function layOut(items) {
  const lanes = []; // the commit that each waits for, or null
  return items.map(({ commit, acks = [] }) => {
    const waiting = lanes.flatMap((awaited, lane) => (awaited === commit ? [lane] : []));
    const past = lanes.flatMap((awaited, lane) => (awaited && awaited !== commit ? [[lane, lane]] : []));
    const own = waiting.length ? waiting[0] : freeLane(lanes);
    for (const lane of waiting) lanes[lane] = null;
    lanes[own] = null;
    const below = acks.map((ack) => {
      let lane = lanes.indexOf(ack);
      if (lane < 0) lane = lanes[own] ? freeLane(lanes) : own;
      lanes[lane] = ack;
      return [own, lane];
    });
    const above = waiting.map((lane) => [lane, own]);
    const width = Math.min(1 + Math.max(own, ...[...above, ...past, ...below].flat()), LANES_MAX);
    return { own, above, past, below, width, isHead: !waiting.length };
  });
}

function freeLane(lanes) {
  const free = lanes.findIndex((awaited) => !awaited);
  return free < 0 ? lanes.push(null) - 1 : free;
}

/** Pixels that these drawings take. */
export function widthOf(drawings) {
  return LANE_WIDTH * (1 + drawings.reduce((most, one) => Math.max(most, one.width), 1));
}

export function Lanes({ drawing, width }) {
  const { own, above, past, below } = drawing;
  const line = ([from, to], y1, y2, colour) =>
    html`<line x1=${middle(from)} y1=${y1} x2=${middle(to)} y2=${y2} class=${`lane${colour % 6}`} />`;
  return html`<svg width=${width} aria-hidden="true">
    ${past.map((ends) => line(ends, 0, "100%", ends[0]))}
    ${above.map((ends) => line(ends, 0, NODE_Y, ends[0]))}
    ${below.map((ends) => line(ends, NODE_Y, "100%", ends[1]))}
    <circle cx=${middle(own)} cy=${NODE_Y} r="4.5" class=${`lane${own % 6}`} />
  </svg>`;
}

function middle(lane) {
  return LANE_WIDTH * (Math.min(lane, LANES_MAX - 1) + 0.9);
}
