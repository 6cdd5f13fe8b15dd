"""`Allowance`: a bound on uses without a pause, to which each keep-alive adds some. A session has no clock."""


class Allowance:
    """Allowance of one session, of one side."""

    def __init__(self, at_once: int, per_check: int) -> None:
        self._at_once = at_once
        self._per_check = per_check
        self.left = at_once
        """Uses that are left now."""

    def check(self) -> None:
        """Allow some more: called at each keep-alive."""
        self.left = min(self.left + self._per_check, self._at_once)

    def take(self, count: int = 1) -> bool:
        """Take this many uses; return True if that many were left."""
        if self.left < count:
            return False
        self.left -= count
        return True
