"""Devices of one person between whole nodes: to add them, and to see what each node knows of them."""

from pathlib import Path

import trio

from protocol.formats.body import Permission
from protocol.formats.links import DeviceLink, parse_device_link
from protocol.formats.text import id_text
from protocol.ids import UserId
from storage.repos.repos import Repo
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected
from tests.support.served import service_of


def user(node: Node) -> str:
    """Return the id of a node's user."""
    return id_text(node.author.user)


def repo_of(node: Node, repo: Repo) -> Repo | None:
    """Return the same repo on another node."""
    return next((one for one in node.replica.repos.values() if one.repo_id == repo.repo_id), None)


def held(node: Node, repo: Repo, other: Node) -> Permission | None:
    """Return what the other's user may do in a repo, as far as a node knows."""
    here = repo_of(node, repo)
    return None if here is None else node.replica.permission(here, other.author.user)


def persons(node: Node, repo: Repo) -> dict[UserId, UserId]:
    """Return who is whose device, as a node shows it."""
    return dict(node.replica.persons(repo.repo_id))


async def settle(*nodes: Node) -> None:
    """Connect all to the first for a while, twice."""
    first, *others = nodes
    with fail_after(120):
        for other in [*others, *others]:
            async with connected(other, first):
                await trio.sleep(10)


async def add(laptop: Node, folder: Path) -> DeviceLink:
    """Return a link for a device of the laptop's user."""
    return parse_device_link((await service_of(laptop, folder).people.pairing.add(3600))["link"])


async def join(phone: Node, laptop: Node, folder: Path) -> DeviceLink:
    """Make the phone a device of the laptop's user."""
    link = await add(laptop, folder)
    await phone.joiner.begin(link.opened(), link.person)
    await settle(laptop, phone)
    return link


async def member_of(boss: Node, laptop: Node, permission: Permission = Permission.WRITE) -> Repo:
    """Make a repo of the boss's that the laptop's user is in."""
    repo, _ = boss.create_repo("work")
    await laptop.joiner.begin(boss.invite(repo, permission))
    await settle(boss, laptop)
    return repo
