"""Exception that names why a set reconciliation ended without a result."""


class Unreconciled(Exception):
    """The sets were not reconciled this way; `reason` is a stable code. What was found before it may still be used.

    - `too_many_differences`: more than the kept prefix or the limits can tell: compare by ranges, or send everything;
    - `bad_symbols`: the coded symbols are no sum of ids: a lie, or a collision. Compare by ranges;
    - `out_of_turn`: a frame that nobody asked for;
    - `bad_ids`: a range names an id twice;
    - `too_many_frames`, `too_many_ranges`: it does not come to an end.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
