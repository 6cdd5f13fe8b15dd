"""Routes of the local HTTP API: maps requests to handlers, and errors to JSON.

`authentication` decides who may call at all, `access` what a token may. What an endpoint takes and answers stands in
`node.contract`.
"""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Final

import structlog
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from node.api.access import Access, check_action
from node.api.answers import list_answers
from node.api.authentication import Gate, error_response, remote_of
from node.api.binding import admitted, bind
from node.api.bundles import BundleHandlers
from node.api.callers import CALLER, Callers, caller_of
from node.api.event_streams import EventStreams
from node.api.events import EventEndpoints
from node.api.files import FileHandlers, archive_response
from node.api.openapi import encode_document
from node.api.post_streams import PostStreams
from node.api.repeats import Repeats, StatesRun, new_run
from node.api.requests import Handler, answer_json, json_response, read_json, refusal_of
from node.api.routing import Routes
from node.api.search import SearchHandler
from node.api.services import Services
from node.api.web_page import (
    CODE_QUERY,
    EXPORT_PATH,
    OPEN_PATHS,
    REPORT_PATH,
    PageCodes,
    page_routes,
    read_code,
    report_response,
)
from node.contract.browsers import KEEP_BROWSER, MAKE_PAIRING_CODE, KeepRequest
from node.contract.bundles import READ_BUNDLE, WRITE_BUNDLE
from node.contract.care import OPEN_REPORT
from node.contract.commits import STREAM_POSTS
from node.contract.document_queries import FOLLOW_JSON_ANYWHERE, FOLLOW_JSON_DOCUMENTS
from node.contract.documents import FOLLOW_TEXT, TELL_PRESENCE
from node.contract.endpoint import PREFIX, REPO_HEADER
from node.contract.files import ADD_FILE, ADD_FILES, GET_FILE
from node.contract.json_documents import FOLLOW_JSON
from node.contract.node import DESCRIBE_API, FOLLOW_NODE, MAKE_EXPORT_CODE, MAKE_PAGE_CODE
from node.contract.search import SEARCH
from node.contract.table import ROUTED, AnyEndpoint
from node.contract.timelines import FOLLOW_EDITS
from node.contract.tokens import SHOW_TOKEN
from node.observe.watching import Monitoring
from node.runtime.errors import ServiceError
from node.runtime.metrics import CONTENT_TYPE
from node.runtime.resolve import preferred_repo
from node.runtime.user_requests import UserRequests

log = structlog.get_logger()


def create_app(
    services: Services, callers: Callers, streams: EventStreams | None = None, run: str | None = None
) -> ASGIApp:
    """Return the application. Without a token it serves health and the page's files alone.

    `run` is another at each start of the daemon.
    """
    node, run_blocking = services.node, services.hub.run_blocking
    codes = PageCodes()
    report_codes, export_codes = (
        PageCodes(address=f"{path}?{CODE_QUERY}=") for path in (REPORT_PATH, EXPORT_PATH)
    )
    run = new_run() if run is None else run
    repeats = Repeats(run)

    async def give_token(request: Request) -> Response:
        remote, given = remote_of(request.scope), await read_code(request)
        if remote is not None:
            # Counted before it is looked at: a right code must not tell itself from a wrong one that came too fast.
            remote.limits.take_try(remote.subnet_of(request.scope))
            return json_response({"token": await node.browsers.pair(given.code, given.name)})
        codes.redeem(given.code)
        return json_response({"token": await node.tokens.make_for_page()})

    async def pairing_code(request: Request) -> Response:
        caller = caller_of(request)
        node.tokens.check_room(caller)
        maker = "" if caller.token is None else caller.token.digest
        return await answer_json(node.browsers.make_code(maker))

    async def keep_browser(request: Request) -> Response:
        asked = await read_json(request, KeepRequest)
        return await answer_json(node.browsers.keep(caller_of(request), asked.name))

    async def show_report(request: Request) -> Response:
        report_codes.redeem(request.query_params.get(CODE_QUERY, ""))
        return report_response(await node.reports.read())

    async def send_export(request: Request) -> Response:
        export_codes.redeem(request.query_params.get(CODE_QUERY, ""))
        archive = await node.archives.open()
        return await archive_response(request, f"{archive.name}.zip", node.archives.send(archive))

    probes = _Probes(node.watching)
    access = Access(services.targets, callers, run_blocking)
    handlers = _other_handlers(services, streams or EventStreams(), access)
    handlers[STREAM_POSTS] = PostStreams(services.branches.posts, repeats, callers, run_blocking).open
    handlers[MAKE_PAIRING_CODE] = pairing_code
    handlers[KEEP_BROWSER] = keep_browser
    handlers[MAKE_PAGE_CODE] = lambda _: answer_json(codes.answer())
    handlers[OPEN_REPORT] = lambda _: answer_json(report_codes.answer())
    handlers[MAKE_EXPORT_CODE] = lambda _: answer_json(export_codes.answer())
    routes = [
        Route("/healthz", _health),
        Route("/readyz", _mapped(probes.readiness)),
        Route("/metrics", _mapped(probes.metrics)),
        *page_routes(*map(_mapped, (give_token, show_report, send_export))),
    ]
    handlers |= {one.endpoint: bind(one, access, repeats, node.revoking) for one in list_answers(services)}
    for endpoint in ROUTED:
        handler = admitted(endpoint, handlers[endpoint], access)
        routes.append(Route(route_path(endpoint), _mapped(handler), methods=[endpoint.method]))
    application = Routes(routes, _NO_SUCH_ENDPOINT, _refuse_method)
    return Gate(
        StatesRun(_Meter(application, node.watching, services.hub.user_requests), run), callers, OPEN_PATHS
    )


def route_path(endpoint: AnyEndpoint) -> str:
    """Return the endpoint's path as Starlette writes it: `{repo:path}` where the value may have slashes."""
    parts = {
        one.name: f"{{{one.name}:path}}" if one.takes_slashes else f"{{{one.name}}}"
        for one in endpoint.path_parameters
    }
    return PREFIX + endpoint.fill_path(parts)


def _other_handlers(services: Services, streams: EventStreams, access: Access) -> dict[AnyEndpoint, Handler]:
    """Return handlers of endpoints that stream, or that need the caller."""

    async def describe(_request: Request) -> Response:
        document = await services.hub.run_blocking(encode_document)
        return Response(document, media_type="application/json")

    events, files = EventEndpoints(services, streams, access), FileHandlers(services.branches.files)
    bundles = BundleHandlers(services.hub, services.joiner, services.targets)
    return {
        FOLLOW_EDITS: events.edits,
        FOLLOW_JSON_ANYWHERE: events.documents_anywhere,
        FOLLOW_JSON_DOCUMENTS: events.documents,
        FOLLOW_JSON: events.json,
        FOLLOW_NODE: events.node,
        FOLLOW_TEXT: events.text,
        TELL_PRESENCE: events.presence,
        ADD_FILE: files.add,
        ADD_FILES: files.add_many,
        GET_FILE: files.get,
        WRITE_BUNDLE: bundles.write,
        READ_BUNDLE: bundles.read,
        SEARCH: SearchHandler(services).search,
        DESCRIBE_API: describe,
        SHOW_TOKEN: lambda request: answer_json(services.node.tokens.show(caller_of(request))),
    }


class _Probes:
    """Probes of supervisors and Prometheus, which are no endpoints of the table."""

    def __init__(self, watching: Monitoring) -> None:
        self._watching = watching

    async def readiness(self, _request: Request) -> Response:
        """200 or 503, and each check by name."""
        is_ready, checks = await self._watching.readiness()
        answer = {"status": "ready" if is_ready else "not ready", "checks": checks}
        return json_response(answer, status_code=200 if is_ready else 503)

    async def metrics(self, request: Request) -> Response:
        """Answer Prometheus."""
        check_action(caller_of(request), "metrics", "GET /metrics")
        return Response(await self._watching.metrics(), media_type=CONTENT_TYPE)


class _Meter:
    """Middleware that counts method, status and time to the first byte of requests that passed authentication.

    Until then others give way to one with a token: what is streamed afterwards may take for ever.
    """

    def __init__(self, application: ASGIApp, watching: Monitoring, requests: UserRequests) -> None:
        self._application = application
        self._watching = watching
        self._requests = requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        began = time.perf_counter()

        async def reporting(message: Message) -> None:
            if message["type"] == "http.response.start":
                work.close()
                self._watching.answered(
                    _method(scope["method"]), message["status"], time.perf_counter() - began
                )
            await send(message)

        with ExitStack() as work:
            if CALLER in scope:
                work.enter_context(self._requests.at_work())
            await self._application(scope, receive, reporting)


def _method(name: str) -> str:
    """Return one of a few names: a client may call anything a method."""
    return name if name in ("GET", "POST", "PUT", "DELETE") else "other"


def _mapped(handler: Handler) -> Handler:
    async def run(request: Request) -> Response:
        preferred_repo.set(request.headers.get(REPO_HEADER, ""))  # for this request: each has its own context
        try:
            return await handler(request)
        except ClientDisconnect:
            log.info("client left", path=request.url.path)
            return Response()
        except Exception as error:  # the API's last border
            return error_response(refusal_of(error, request.url.path))

    return run


async def _health(_request: Request) -> Response:
    return json_response({"status": "ok"})


def _refuse_method(allowed: Sequence[str]) -> Response:
    """Return the answer to a method that an endpoint does not have (RFC 9110, section 15.5.6)."""
    refusal = error_response(
        ServiceError(
            "method_not_allowed",
            f"this endpoint takes {', '.join(allowed)}",
            "docs/reference/endpoints.md lists methods and paths",
        )
    )
    refusal.headers["Allow"] = ", ".join(allowed)
    return refusal


_NO_SUCH_ENDPOINT: Final = error_response(
    ServiceError("not_found", "no such endpoint", "docs/reference/endpoints.md lists them")
)
