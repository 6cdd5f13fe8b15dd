"""The rules of names, written again from docs/specification/profiles/names.md."""

_FORBIDDEN = (
    "0000-001F 007F-009F 00A0 1680 2000-200A 2028 2029 202F 205F 3000 00AD 034F 061C 115F 1160 17B4 17B5 180B-180F "
    "200B-200F 202A-202E 2060-206F 2800 3164 FE00-FE0F FEFF FFA0 E0000-E0FFF 0600-0605 06DD 070F 0890 0891 08E2 "
    "110BD 110CD 13430-1345F 1BCA0-1BCA3 1D173-1D17A FFF0-FFFF D800-DFFF E000-F8FF FDD0-FDEF F0000-10FFFF 005B 005D"
)
_MARKS = "0300-036F 1AB0-1AFF 1DC0-1DFF 20D0-20FF FE20-FE2F"


def _holds(spans: str, char: str) -> bool:
    for span in spans.split():
        first, _, last = span.partition("-")
        if int(first, 16) <= ord(char) <= int(last or first, 16):
            return True
    return False


def may_be_stated(name: str) -> bool:
    """Whether a `profile1` with this name says something."""
    marks = "".join("m" if _holds(_MARKS, char) else "." for char in name)
    is_id = len(name) == 52 and set(name) <= set("abcdefghijklmnopqrstuvwxyz234567")
    return (
        1 <= len(name) <= 64
        and not any(_holds(_FORBIDDEN, char) or ord(char) & 0xFFFF >= 0xFFFE for char in name)
        and not (name.startswith(" ") or name.endswith(" ") or "  " in name)
        and not (marks.startswith("m") or "mmmmm" in marks or is_id)
    )
