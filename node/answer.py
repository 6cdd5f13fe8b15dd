"""What a peer answers to a question for a block of a file, to whoever waits for it."""

from dataclasses import dataclass, field

import trio


@dataclass(slots=True)
class Answer:
    """What a peer says to one question for a block."""

    block: bytes | None = None
    is_lost: bool = False
    is_there: trio.Event = field(default_factory=trio.Event)

    def settle(self, block: bytes | None) -> None:
        """The peer has answered."""
        self.block = block
        self.is_there.set()

    def lose(self) -> None:
        """The peer has left."""
        self.is_lost = True
        self.is_there.set()
