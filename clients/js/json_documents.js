// JSON documents of a branch: edits, schemas, live results of queries.

import { RavelError } from "./errors.js";

/**
 * A JSON document of a branch. A path is a map key, or a list of map keys and places in lists from the outside in; it begins
 * at `item`, the `$id` of an item, where one is given. Each method writes one commit; `write` does several edits together.
 */
export class JsonDocument {
  #ravel;
  #at;
  #schema;
  #findFaults;

  constructor(ravel, branch, name, { schema, findFaults } = {}) {
    this.#ravel = ravel;
    this.#at = { branch, name };
    this.#schema = schema;
    this.#findFaults = findFaults;
  }

  /** Value, conflicts and unplaced items. */
  read(options) {
    return this.#ravel.followJson(this.#at, options);
  }

  /**
   * Edits as the node takes them (docs/reference/endpoints.md): all of them, or none. A document that would not keep to its
   * schema throws a `RavelError` with `faults`.
   */
  async write(edits, options) {
    if (this.#schema !== undefined) {
      const { value } = await this.#ravel.editJson({ ...this.#at, edits, preview: true }, options);
      const faults = this.faults(value);
      if (faults.length) {
        const said = `the document would not keep to its schema: ${faults[0]}`;
        throw Object.assign(new RavelError("bad_input", said, { advice: "nothing was written" }), { faults });
      }
    }
    return this.#ravel.editJson({ ...this.#at, edits }, options);
  }

  /** Faults of a value that was read, without `$id` of items. Others may have written it: nothing is hidden. */
  faults(value) {
    if (this.#schema === undefined) return [];
    if (!this.#findFaults) {
      const advice = "give `findFaults` beside the schema";
      throw new RavelError("bad_request", "a schema is checked by the app's validator", { advice });
    }
    return this.#findFaults(withoutIds(value), this.#schema);
  }

  /** Writes the schema beside the document, for other apps to see. */
  stateSchema() {
    return this.#schemas.put("schema", JSON.stringify(this.#schema));
  }

  /** Schemas that apps stated: the one that shows, and others that were stated at the same time. */
  async statedSchemas() {
    const { value, conflicts } = await this.#schemas.read();
    const beside = conflicts.filter(({ path }) => path.length === 1 && path[0] === "schema").map((one) => one.value);
    return [value?.schema, ...beside].flatMap(readSchema);
  }

  get #schemas() {
    const { branch, name } = this.#at;
    return new JsonDocument(this.#ravel, branch, name ? `schema/${name}` : "schema");
  }

  async put(path, value, { item } = {}) {
    return this.write([{ edit: "put", path: partsOf(path), value: given(value), item }]);
  }

  add(path, by = 1, { item } = {}) {
    return this.write([{ edit: "add", path: partsOf(path), by, item }]);
  }

  /** Inserts into a list: at its end, `before` or `after` an item, or at an `index`. Gives the new item's id. */
  async insert(path, value, place = {}) {
    const { items } = await this.write([{ edit: "insert", path: partsOf(path), value: given(value), ...place }]);
    return items[0];
  }

  /** Moves an item into a list, or within it. */
  move(moved, path, place = {}) {
    return this.write([{ edit: "move", moved, path: partsOf(path), ...place }]);
  }

  /** Removes a key of a map, or an item of a list. */
  remove(path, { item } = {}) {
    return this.write([{ edit: "remove", path: partsOf(path), item }]);
  }

  /** The document now, and whenever it has changed: for ever, also where the connection is cut. */
  async *live(options) {
    for await (const { data } of this.#ravel.watchJson(this.#at, options)) yield data;
  }
}

/** Results, each with the names of what was added, changed, moved and removed since the one before. */
export async function* liveResults(events) {
  let before = new Map();
  for await (const { name, data } of events) {
    const isWhole = name === "result";
    const known = new Map(before);
    for (const one of isWhole ? data.documents : [...data.added, ...data.changed]) known.set(keyOf(one), one);
    const order = isWhole ? data.documents.map(keyOf) : data.order;
    const now = new Map(order.map((one) => [one, known.get(one)]));
    const added = order.filter((one) => !before.has(one));
    const isChanged = (one) => before.has(one) && JSON.stringify(before.get(one)) !== JSON.stringify(now.get(one));
    const changed = order.filter(isChanged);
    const removed = [...before.keys()].filter((one) => !now.has(one));
    before = now;
    yield { documents: [...now.values()], added, changed, moved: isWhole ? [] : data.moved, removed };
  }
}

/** The name of a document; of several branches, BRANCH/NAME. */
function keyOf({ key, name }) {
  return key ?? name;
}

/** A schema that an app stated, in a list; an empty one for what is none: anybody with the right to write may state that. */
function readSchema(text) {
  try {
    const schema = JSON.parse(text);
    return schema !== null && typeof schema === "object" && !Array.isArray(schema) ? [schema] : [];
  } catch {
    return [];
  }
}

function withoutIds(value) {
  if (Array.isArray(value)) return value.map(withoutIds);
  if (value === null || typeof value !== "object") return value;
  const kept = Object.entries(value).filter(([key]) => key !== "$id");
  return Object.fromEntries(kept.map(([key, one]) => [key, withoutIds(one)]));
}

/** Refuses what is undefined, as a field that is mistyped: it would be left out, and null written. */
function given(value) {
  if (value === undefined) throw new RavelError("bad_request", "the value is undefined", { advice: "null is a value" });
  return value;
}

function partsOf(path) {
  return typeof path === "string" ? [path] : path;
}
