"""The generated part of the JavaScript client.

`endpoints.js` has what a request needs, `ravel.d.ts` the types; both are made from the table of endpoints and from the
OpenAPI document. The page loads the same files: `node/web/client` has links to them, which wheels hold as files.
"""

import json
import re
from pathlib import Path
from typing import Any, Final

from node.api.openapi import describe_document
from node.contract.table import ENDPOINTS, SUBJECTS, AnyEndpoint

_ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = _ROOT / "clients" / "js"
_MADE: Final = "// Made from the code by `make reference`: change it there.\n"
_PRIMITIVES: Final = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
}
_PRELUDE: Final = """
/** Options of a request. */
export interface RequestOptions {
  signal?: AbortSignal;
  /** How long to wait for the answer; each endpoint has a default. */
  timeoutMs?: number;
  /** The id of a repo whose branches are meant first where a branch is given by its name. */
  repo?: string;
  /** Do not try again where no answer came. */
  once?: boolean;
}

/** Options of a stream of events. */
export interface StreamOptions {
  signal?: AbortSignal;
  onState?: (isLive: boolean) => void;
}

/** What went wrong, by the codes of docs/reference/exit-codes.md. */
export class RavelError extends Error {
  code: string;
  advice: string;
  status: number;
  retryAfterMs: number;
  constructor(
    code: string,
    message: string,
    more?: { advice?: string; status?: number; cause?: unknown; retryAfterMs?: number },
  );
}

/** The content of a file; goes on where it was cut. */
export class Download implements AsyncIterable<Uint8Array> {
  readonly size: number;
  readonly name: string;
  [Symbol.asyncIterator](): AsyncIterator<Uint8Array>;
  blob(type?: string): Promise<Blob>;
  cancel(): Promise<void>;
}

/** A map key, or map keys and places in lists from the outside in. */
export type JsonPath = string | readonly (string | number)[];

/** Where an item goes in a list; at its end without any. `item`: the item in which the path begins. */
export interface JsonPlace {
  item?: string;
  before?: string;
  after?: string;
  index?: number;
}

/** A JSON document of a branch. Each method but `read` and `live` writes a commit. */
export class JsonDocument {
  read(options?: RequestOptions): Promise<JsonDocumentView>;
  write(edits: JsonChange[], options?: RequestOptions): Promise<JsonEditResult>;
  put(path: JsonPath, value: unknown, at?: { item?: string }): Promise<JsonEditResult>;
  add(path: JsonPath, by?: number, at?: { item?: string }): Promise<JsonEditResult>;
  insert(path: JsonPath, value: unknown, place?: JsonPlace): Promise<string>;
  move(moved: string, path: JsonPath, place?: JsonPlace): Promise<JsonEditResult>;
  remove(path: JsonPath, at?: { item?: string }): Promise<JsonEditResult>;
  live(options?: StreamOptions): AsyncGenerator<JsonDocumentView>;
  /** Faults of a value that was read. */
  faults(value: unknown): string[];
  stateSchema(): Promise<JsonEditResult>;
  statedSchemas(): Promise<object[]>;
}

/** A JSON Schema, and what finds where a value does not keep to it: a validator that the app brings. Writes need both. */
export interface JsonChecks {
  schema?: object;
  findFaults?: (value: unknown, schema: object) => string[];
}

/** Writes posts into a branch. */
export class PostWriter {
  /** Settles when fewer than 256 posts are not answered. */
  readonly ready: Promise<void>;
  /** Gives the commit once it is durable. */
  post(text: string): Promise<WrittenCommitView>;
  /** Waits until all are answered, and throws the first failure. */
  close(): Promise<void>;
}

/** What a query finds now, and names (of several branches, keys) of what has changed since the result before. */
export interface LiveResult {
  documents: FoundDocument[];
  added: string[];
  changed: string[];
  moved: string[];
  removed: string[];
}

/** JSON documents that a query finds. */
export interface JsonDocuments {
  read(options?: RequestOptions): Promise<FoundDocument[]>;
  live(options?: StreamOptions): AsyncGenerator<LiveResult>;
}

export function connect(options: {
  url?: string;
  token: string;
  fetch?: typeof globalThis.fetch;
  retryMs?: number;
}): Ravel;
"""


def files() -> dict[Path, str]:
    """Path of each made file -> its text."""
    return {FOLDER / "endpoints.js": _endpoints(), FOLDER / "ravel.d.ts": _types()}


def camel(name: str) -> str:
    return re.sub(r"_(\w)", lambda found: found[1].upper(), name)


def _body_of(endpoint: AnyEndpoint) -> str | None:
    if endpoint.takes_bytes:
        if endpoint.line is not None:
            return "lines"
        return "bytes" if endpoint.entry is None else "files"
    return "json" if endpoint.request is not None else None


def _endpoints() -> str:
    lines = [_MADE, "export const ENDPOINTS = {"]
    for endpoint in ENDPOINTS:
        names = [part.name for part in endpoint.path_parameters] + [one.name for one in endpoint.query]
        names += endpoint.body_fields
        assert len(set(names)) == len(names), f"{endpoint.name}: two values of one name"
        entry = {
            "method": endpoint.method,
            "path": endpoint.path,
            "query": [one.name for one in endpoint.query],
            "body": _body_of(endpoint),
            "events": bool(endpoint.events),
            "key": endpoint.takes_key,
            "seconds": int(endpoint.seconds_max),
        }
        lines.append(f"  {camel(endpoint.name)}: {json.dumps(entry)},")
    return "\n".join([*lines, "};", ""])


def _types() -> str:
    document = describe_document()
    lines = [_MADE.rstrip(), _PRELUDE]
    for name, schema in document["components"]["schemas"].items():
        lines += [_comment(schema.get("description", ""), ""), f"export interface {name} {_type(schema)}", ""]
    lines.append("export class Ravel {")
    lines.append(_comment("A JSON document of a branch, whether it has been written to or not.", "  "))
    lines.append("  document(branch: string, name?: string, checks?: JsonChecks): JsonDocument;")
    lines.append(_comment("Writes posts without waiting for each: their answers come in order.", "  "))
    lines.append("  writer(branch: string, options?: RequestOptions): PostWriter;")
    lines.append(
        _comment("JSON documents of branches (null: all) that have such a name and meet a filter.", "  ")
    )
    lines.append(
        "  documents(branch: string | string[] | null | undefined, query?: { prefix?: string; where?: object; "
        "sort?: string | string[]; limit?: number; repo?: string }): JsonDocuments;"
    )
    for subject, endpoints in SUBJECTS.items():
        lines.append(f"  // {subject}")
        for endpoint in endpoints:
            if endpoint.line is not None:
                continue  # `writer` calls it
            operation = document["paths"][endpoint.path][endpoint.method.lower()]
            lines += _method(endpoint, operation)
    lines += ["}", ""]
    return "\n".join(lines)


def _method(endpoint: AnyEndpoint, operation: dict[str, Any]) -> list[str]:
    name = camel(endpoint.name)
    fields = [f"{part.name}: string" for part in endpoint.path_parameters]
    kinds = {int: "number", str: "string", bool: "boolean"}
    fields += [
        f"{one.name}{'' if endpoint.takes_bytes else '?'}: {kinds[one.type]}" for one in endpoint.query
    ]
    values = "{ " + "; ".join(fields) + " }" if fields else "{}"
    is_optional = not endpoint.path_parameters and not endpoint.takes_bytes
    if endpoint.request is not None:
        values = f"{values} & {endpoint.request.__name__}"
        is_optional = is_optional and not any(one.required for one in endpoint.body_fields.values())
    elif endpoint.takes_bytes and endpoint.entry is None:
        values += " & { content: Blob | ArrayBuffer | Uint8Array | string | ReadableStream<Uint8Array> }"
    elif endpoint.takes_bytes:
        values += " & { files: { name: string; content: Blob | ArrayBuffer | Uint8Array | string }[] }"
    answer = (
        "Download"
        if endpoint.headers
        else "ReadableStream<Uint8Array>"
        if endpoint.is_download
        else "unknown"
    )
    if not endpoint.is_download:
        answer = _type(operation["responses"]["200"]["content"]["application/json"]["schema"])
    mark = "?" if is_optional else ""
    lines = [
        _comment(endpoint.summary, "  "),
        f"  {name}(values{mark}: {values}, options?: RequestOptions): Promise<{answer}>;",
    ]
    if endpoint.events:
        watch = name.replace("follow", "watch", 1)
        events = " | ".join(
            f'{{ name: "{event.name}"; id: string; data: {event.data.__name__} }}'
            for event in endpoint.events
            if event.name != "closing"
        )
        lines.append(f"  {watch}(values{mark}: {values}, options?: StreamOptions): AsyncGenerator<{events}>;")
    return lines


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "enum" in schema:
        return " | ".join(json.dumps(one) for one in schema["enum"])
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(_type(one) for one in schema["anyOf"]))
    if schema.get("type") == "array":
        inner = _type(schema["items"]) if "items" in schema else "unknown"
        return f"({inner})[]" if "|" in inner else f"{inner}[]"
    if "properties" in schema:
        required = schema.get("required", [])
        fields = "".join(
            f"  {name}{'' if name in required else '?'}: {_type(field)};\n"
            for name, field in schema["properties"].items()
        )
        return f"{{\n{fields}}}"
    if schema.get("type") == "object":
        values = schema.get("additionalProperties")
        return f"Record<string, {_type(values) if isinstance(values, dict) else 'unknown'}>"
    return _PRIMITIVES.get(str(schema.get("type")), "unknown")


def _comment(text: str, indent: str) -> str:
    return f"{indent}/** {text.replace('*/', '* /').replace(chr(10), ' ')} */"
