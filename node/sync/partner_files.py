"""Keeps the files of two relays in step: deposits with a partner what was deposited here, by the same signatures.

Topics and their publications are compared like those of any two nodes. Files have no set that is compared: a relay lists
what its partner keeps of a topic, and offers the rest, when the topic is joined and when a file has come.
"""

import structlog
import trio

from node.relay.relay import RelayService
from node.runtime.backoff import Backoff, store_backoff
from node.sync.block_requests import NotFetched
from node.sync.hub import Hub
from node.sync.relay_client import RelayClient
from protocol.formats.text import id_text
from protocol.ids import ObjectId, ShortId, TopicKey
from protocol.limits.peers import (
    DEPOSIT_LOOK_SECONDS,
    DEPOSIT_PAUSE_MAX_SECONDS,
    DEPOSIT_PAUSE_SECONDS,
    FILES_LISTED_COUNT_MAX,
)
from protocol.session.deposits import short_file
from protocol.session.messages import FileDeposit
from storage.engine.database import StorageError
from storage.relay.relay import KeptTopic

log = structlog.get_logger()


class PartnerFiles:
    """One task for each connected partner."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._served: set[RelayClient] = set()

    async def run(self) -> None:
        """Serve partners for as long as the node runs. On a node that is no relay it ends."""
        relay = self._hub.relay
        if relay is None:
            return
        async with trio.open_nursery() as nursery:
            while True:
                for port in self._hub.relay_clients:
                    if port.keeps_files and relay.is_partner(port.peer) and port not in self._served:
                        self._served.add(port)
                        nursery.start_soon(self._serve, relay, port)
                await trio.sleep(DEPOSIT_LOOK_SECONDS)

    async def _serve(self, relay: RelayService, port: RelayClient) -> None:
        offered: dict[TopicKey, int] = {}  # by topic: files that had come when they were last offered
        again, backoff = Backoff(DEPOSIT_PAUSE_SECONDS, DEPOSIT_PAUSE_MAX_SECONDS), store_backoff()
        due_at = trio.current_time() + again.fail()
        seen: tuple[int, int] | None = None
        try:
            while port.keeps_files:
                if trio.current_time() >= due_at:  # what was refused has room by and by
                    offered, due_at, seen = {}, trio.current_time() + again.fail(), None
                pause = DEPOSIT_LOOK_SECONDS
                # Two relays may share 100,000 topics: these are looked at when there is one more, or one more file.
                state = port.joined_count, relay.files_kept_count
                if state == seen:
                    await trio.sleep(pause)
                    continue
                try:
                    if await self._offer_new(relay, port, offered):
                        again.reset()
                    backoff.reset()
                    seen = state
                except StorageError as error:
                    log.error("storage failed", error=str(error))
                    pause = backoff.fail()
                await trio.sleep(pause)
        except NotFetched:
            pass  # it has left
        finally:
            self._served.discard(port)

    async def _offer_new(self, relay: RelayService, port: RelayClient, offered: dict[TopicKey, int]) -> bool:
        """Offer the files of topics that got some since `offered`, which is kept up. Return True if the partner took any.

        Raises StorageError, NotFetched.
        """
        has_taken = False
        for topic in port.entrusted():
            kept, count = relay.topics.get(topic), relay.files_kept[topic]
            if kept is not None and offered.get(topic) != count:
                has_taken |= await self._offer(relay, port, kept)
                offered[topic] = count
        return has_taken

    async def _offer(self, relay: RelayService, port: RelayClient, topic: KeptTopic) -> bool:
        """Offer a partner the files of a topic that it lacks; return True if it took any. Both are in the order of ids."""
        has_taken = False
        theirs: set[ShortId] = set()
        upto, is_last = ShortId(bytes(16)), False
        after: ObjectId | None = None
        while deposits := await relay.load_deposits(topic, after):
            after = deposits[-1].file
            while not is_last and upto < short_file(after):
                listed = await port.ask_list(topic.topic, upto)
                is_last = len(listed) < FILES_LISTED_COUNT_MAX or listed[-1] <= upto
                theirs = {*(one for one in theirs if one >= short_file(deposits[0].file)), *listed}
                upto = listed[-1] if listed else upto
            lacking = [one for one in deposits if short_file(one.file) not in theirs]
            has_taken |= await self._offer_all(port, topic.topic, lacking)
        return has_taken

    async def _offer_all(self, port: RelayClient, topic: TopicKey, deposits: list[FileDeposit]) -> bool:
        is_lost = has_taken = False

        async def offer(deposit: FileDeposit) -> None:
            nonlocal is_lost, has_taken
            try:
                refusal = await port.offer(topic, deposit)
            except NotFetched:
                is_lost = True
                return
            has_taken |= not refusal
            if refusal:
                log.warning("a relay does not keep a file", relay=id_text(port.peer), reason=refusal)

        async with trio.open_nursery() as nursery:
            for deposit in deposits:
                nursery.start_soon(offer, deposit)
        if is_lost:
            raise NotFetched
        return has_taken
