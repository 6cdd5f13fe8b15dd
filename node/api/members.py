"""Requests of the API about who is in a repo: members, invitations, devices, epochs and quorums."""

from starlette.requests import Request
from starlette.responses import Response

from node.api import bodies
from node.api.requests import Handler, answer_json, answer_of, read_body
from node.api.service import NodeService


class MemberHandlers:
    """Each handler takes the request apart and calls the service."""

    def __init__(self, service: NodeService) -> None:
        self._service = service

    def table(self) -> list[tuple[str, str, Handler]]:
        """(method, path below /api/v1, handler)."""
        service = self._service
        return [
            ("POST", "/repos/{repo:path}/invitations", self._invite),
            ("GET", "/repos/{repo:path}/members", answer_of("repo", service.members.list_all)),
            ("POST", "/repos/{repo:path}/members", self._grant),
            ("POST", "/repos/{repo:path}/removals", self._remove),
            ("POST", "/repos/{repo:path}/leave", self._leave),
            ("GET", "/repos/{repo:path}/epochs", answer_of("repo", service.renewing.list_epochs)),
            ("POST", "/repos/{repo:path}/epochs", answer_of("repo", service.renewing.renew)),
            ("POST", "/repos/{repo:path}/rekeys", self._rekey),
            ("GET", "/repos/{repo:path}/invitations", answer_of("repo", service.members.invitations)),
            ("DELETE", "/repos/{repo:path}/invitations/{invitation}", self._revoke_invitation),
            ("GET", "/repos/{repo:path}/quorum", answer_of("repo", service.quorums.show)),
            ("PUT", "/repos/{repo:path}/quorum", self._set_quorum),
            ("POST", "/repos/{repo:path}/proposals", self._propose_removal),
            (
                "POST",
                "/repos/{repo:path}/proposals/{proposal}/approvals",
                lambda r: answer_json(
                    service.quorums.approve(r.path_params["repo"], r.path_params["proposal"])
                ),
            ),
            (
                "POST",
                "/repos/{repo:path}/proposals/{proposal}/checkpoint",
                lambda r: answer_json(
                    service.quorums.finish(r.path_params["repo"], r.path_params["proposal"])
                ),
            ),
            ("GET", "/devices", lambda _: answer_json(service.pairing.list_all())),
            ("POST", "/devices/invitations", self._invite_device),
            ("POST", "/devices/join", self._join_as_device),
            ("POST", "/devices/sync", lambda _: answer_json(service.pairing.sync())),
            ("DELETE", "/devices/{device}", answer_of("device", service.pairing.remove)),
            (
                "POST",
                "/branches/{branch:path}/proposals",
                answer_of("branch", service.quorums.propose_checkpoint),
            ),
        ]

    async def _invite(self, request: Request) -> Response:
        body = await read_body(request, bodies.Invitation)
        return await answer_json(
            self._service.invite(
                request.path_params["repo"], body.permission, body.expires_seconds, body.uses
            )
        )

    async def _invite_device(self, request: Request) -> Response:
        body = await read_body(request, bodies.DeviceInvitation)
        return await answer_json(self._service.pairing.add(body.expires_seconds))

    async def _join_as_device(self, request: Request) -> Response:
        body = await read_body(request, bodies.DeviceJoin)
        return await answer_json(self._service.pairing.join(body.link))

    async def _grant(self, request: Request) -> Response:
        body = await read_body(request, bodies.Grant)
        return await answer_json(
            self._service.members.grant(request.path_params["repo"], body.user, body.permission)
        )

    async def _remove(self, request: Request) -> Response:
        body = await read_body(request, bodies.Removal)
        return await answer_json(
            self._service.members.remove(
                request.path_params["repo"], body.user, body.keeps, person=body.person
            )
        )

    async def _leave(self, request: Request) -> Response:
        body = await read_body(request, bodies.Leave)
        return await answer_json(self._service.members.leave(request.path_params["repo"], force=body.force))

    async def _rekey(self, request: Request) -> Response:
        body = await read_body(request, bodies.Rekey)
        return await answer_json(self._service.renewing.rekey(request.path_params["repo"], body.user))

    async def _revoke_invitation(self, request: Request) -> Response:
        params = request.path_params
        return await answer_json(
            self._service.members.revoke_invitation(params["repo"], params["invitation"])
        )

    async def _set_quorum(self, request: Request) -> Response:
        body = await read_body(request, bodies.Quorum)
        repo = request.path_params["repo"]
        return await answer_json(
            self._service.quorums.name(repo, body.signers, body.threshold, removals=body.removals)
        )

    async def _propose_removal(self, request: Request) -> Response:
        body = await read_body(request, bodies.Removal)
        repo = request.path_params["repo"]
        return await answer_json(self._service.quorums.propose_removal(repo, body.user, body.keeps))
