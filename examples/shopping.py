"""A shopping list that several people keep, also while they are apart: a set on a branch, shown in a small web page.

    python examples/shopping.py FOLDER BRANCH [PORT]

FOLDER is that of a running node. docs/apps/tutorial.md leads to it.
"""

import html
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import parse_qs

from ravel import Client, RavelError, connect

PAGE = """<!doctype html><meta charset="utf-8"><title>Shopping</title><h1>Shopping</h1>
<form method="post"><input name="add" autofocus> <button>Add</button></form>
<form method="post"><ul>{items}</ul></form>"""
ITEM = '<li>{text} <button name="remove" value="{text}">got it</button></li>'


def answer_from(api: Client, branch: str, own: str) -> type[BaseHTTPRequestHandler]:
    """A handler of requests that shows and changes the set of a branch. Its page is at `own`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """Show the list."""
            try:
                items = [entry["item"] for entry in api.show_set(branch, limit=1000)["items"]]
            except RavelError as error:
                self.send_error(503, error.message, error.advice)
                return
            page = PAGE.format(items="".join(ITEM.format(text=html.escape(item)) for item in items)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def do_POST(self) -> None:
            """Add an item or remove one, and show the list again."""
            if self.headers.get("Origin") not in (None, own):  # another site's page, in the same browser
                self.send_error(403, "only this page's own forms")
                return
            size = min(int(self.headers.get("Content-Length", 0)), 10_000)
            form = parse_qs(self.rfile.read(size).decode())
            try:
                api.edit_set(branch, add=form.get("add", []), remove=form.get("remove", []))
            except RavelError as error:
                self.send_error(400, error.message, error.advice)
                return
            self.send_response(303)
            self.send_header("Location", "/")
            self.end_headers()

    return Handler


def main() -> None:
    """Serve the page on loopback."""
    if len(sys.argv) < 3:
        sys.exit(
            "usage: python examples/shopping.py FOLDER BRANCH [PORT]\nFOLDER is that of a running node; `ravel up` names it."
        )
    folder, branch = Path(sys.argv[1]), sys.argv[2]
    port = int(sys.argv[3]) if len(sys.argv) > 3 else 8000
    server = HTTPServer(("127.0.0.1", port), BaseHTTPRequestHandler)
    own = f"http://127.0.0.1:{server.server_port}"
    server.RequestHandlerClass = answer_from(connect(folder), branch, own)
    print(f"{own}/", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    try:
        main()
    except RavelError as error:
        sys.exit(f"{error.message}: {error.advice}")
