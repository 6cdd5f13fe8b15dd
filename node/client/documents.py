"""Sets, dicts and texts of branches over the API, from Python: `ApiClient.documents`."""

from base64 import b64encode
from collections.abc import Mapping, Sequence

from node.client.calls import Call, JsonObject, path_part


class DocumentsClient:
    """One method an endpoint. Answers are the JSON objects of docs/reference/api.md."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def show_set(self, branch: str, offset: int = 0, limit: int = 1000) -> JsonObject:
        """A window of a branch's set."""
        return self._call("GET", f"{_path(branch)}/set", query={"offset": offset, "limit": limit})

    def edit_set(self, branch: str, add: Sequence[str] = (), remove: Sequence[str] = ()) -> JsonObject:
        """Add items to a branch's set, and remove others."""
        body = {"add": list(add), "remove": list(remove)}
        return self._call("POST", f"{_path(branch)}/set", body)

    def show_dict(self, branch: str, offset: int = 0, limit: int = 1000) -> JsonObject:
        """A window of a branch's dict."""
        return self._call("GET", f"{_path(branch)}/dict", query={"offset": offset, "limit": limit})

    def get_entry(self, branch: str, key: str) -> JsonObject:
        """One entry of a branch's dict."""
        return self._call("GET", f"{_path(branch)}/dict/entry", query={"key": key})

    def edit_dict(
        self, branch: str, put: Mapping[str, str] | None = None, erase: Sequence[str] = ()
    ) -> JsonObject:
        """Put values into a branch's dict, and erase others."""
        body = {"put": dict(put or {}), "erase": list(erase)}
        return self._call("POST", f"{_path(branch)}/dict", body)

    def snapshot(self, branch: str, kind: str) -> JsonObject:
        """Compact a branch's set or dict."""
        return self._call("POST", f"{_path(branch)}/{kind}/snapshots", {})

    def compact(self, branch: str, *, dry_run: bool, without_missing: bool = False) -> JsonObject:
        """Compact a branch."""
        asked = {"dry_run": dry_run, "without_missing": without_missing}
        return self._call("POST", f"{_path(branch)}/compactions", asked)

    def push_text(self, branch: str, update: bytes) -> JsonObject:
        """Push a Yjs update to a branch's text."""
        return self._call("POST", f"{_path(branch)}/text", {"update": b64encode(update).decode()})

    def pull_text(self, branch: str, root: str | None = None) -> JsonObject:
        """A branch's text as one Yjs update, and of a root as plain text."""
        query = {} if root is None else {"root": root}
        return self._call("GET", f"{_path(branch)}/text", query=query)


def _path(branch: str) -> str:
    return f"/branches/{path_part(branch)}"
