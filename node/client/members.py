"""Members, devices and quorums of repos over the API, from Python: `ApiClient.members`, `devices` and `quorums`."""

from node.client.calls import Call, JsonObject, path_part


class MembersClient:
    """One method an endpoint. Answers are the JSON objects of docs/reference/api.md."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def invite(self, repo: str, permission: str, expires_seconds: int, uses: int = 1) -> JsonObject:
        """Make an invitation link."""
        body = {"permission": permission, "expires_seconds": expires_seconds, "uses": uses}
        return self._call("POST", f"/repos/{path_part(repo)}/invitations", body)

    def list_all(self, repo: str) -> JsonObject:
        """Members of a repo."""
        return self._call("GET", f"/repos/{path_part(repo)}/members")

    def grant(self, repo: str, user: str, permission: str) -> JsonObject:
        """Make a user a member, or raise one."""
        return self._call(
            "POST", f"/repos/{path_part(repo)}/members", {"user": user, "permission": permission}
        )

    def remove(self, repo: str, user: str, keeps: str = "", *, person: bool = False) -> JsonObject:
        """Take a member's rights down to `keeps`; without it exclude the member. With `person`, all of its devices."""
        body = {"user": user, "keeps": keeps, "person": person}
        return self._call("POST", f"/repos/{path_part(repo)}/removals", body)

    def leave(self, repo: str, *, force: bool = False) -> JsonObject:
        """Stop being a member."""
        return self._call("POST", f"/repos/{path_part(repo)}/leave", {"force": force})

    def rekey(self, repo: str, user: str) -> JsonObject:
        """Seal the current secrets for a member again."""
        return self._call("POST", f"/repos/{path_part(repo)}/rekeys", {"user": user})

    def invitations(self, repo: str) -> JsonObject:
        """Invitations of a repo."""
        return self._call("GET", f"/repos/{path_part(repo)}/invitations")

    def revoke_invitation(self, repo: str, invitation: str) -> JsonObject:
        """End an invitation."""
        return self._call("DELETE", f"/repos/{path_part(repo)}/invitations/{path_part(invitation)}")


class DevicesClient:
    """One method an endpoint. Answers are the JSON objects of docs/reference/api.md."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def add(self, expires_seconds: int) -> JsonObject:
        """Make a link for a device."""
        return self._call("POST", "/devices/invitations", {"expires_seconds": expires_seconds})

    def join(self, link: str) -> JsonObject:
        """Become a device by a link."""
        return self._call("POST", "/devices/join", {"link": link})

    def list_all(self) -> JsonObject:
        """The devices of this user's person."""
        return self._call("GET", "/devices")

    def sync(self) -> JsonObject:
        """Hand on again what devices lack."""
        return self._call("POST", "/devices/sync", {})

    def remove(self, device: str) -> JsonObject:
        """Exclude a device, and take the statement back."""
        return self._call("DELETE", f"/devices/{path_part(device)}")


class QuorumsClient:
    """One method an endpoint. Answers are the JSON objects of docs/reference/api.md."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def show(self, repo: str) -> JsonObject:
        """Quorums in force and proposals."""
        return self._call("GET", f"/repos/{path_part(repo)}/quorum")

    def name(self, repo: str, signers: list[str], threshold: int, *, removals: bool) -> JsonObject:
        """Name the signers."""
        body = {"signers": signers, "threshold": threshold, "removals": removals}
        return self._call("PUT", f"/repos/{path_part(repo)}/quorum", body)

    def propose_removal(self, repo: str, user: str, keeps: str = "") -> JsonObject:
        """Ask the signers to exclude or demote a member."""
        return self._call("POST", f"/repos/{path_part(repo)}/proposals", {"user": user, "keeps": keeps})

    def propose_checkpoint(self, branch: str) -> JsonObject:
        """Ask the signers for a checkpoint."""
        return self._call("POST", f"/branches/{path_part(branch)}/proposals")

    def approve(self, repo: str, proposal: str) -> JsonObject:
        """Sign a proposal."""
        return self._call("POST", f"/repos/{path_part(repo)}/proposals/{path_part(proposal)}/approvals")

    def finish(self, repo: str, proposal: str) -> JsonObject:
        """Make a checkpoint that was approved."""
        return self._call("POST", f"/repos/{path_part(repo)}/proposals/{path_part(proposal)}/checkpoint")
