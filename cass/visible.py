"""Text made visible: whatever a model, a file, a tool or a title holds, it cannot control the terminal."""

import re

_UNSEEN = (
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and newline, DEL, C1
    "\u2028\u2029\ufff9-\ufffb\ud800-\udfff"  # line ends, annotations, half characters
    # Whatever has no picture of its own (Default_Ignorable_Code_Point of Unicode: bidi, fillers, selectors, tags) or an
    # empty one (U+2800), but the two joiners, which scripts and emoji are made with.
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
    "|(?<![^\x00-\x9f])[\u200c\u200d]"  # joiners that join nothing
    # The selectors of text and emoji form, unless they stand in a keycap or behind what may be an emoji.
    "|(?<![©®‼⁉™ℹ←-⇿⌀-⏿Ⓜ■-➿⤀-⥿⬀-⯿〰〽㊗㊙\U0001f000-\U0001faff])[\ufe0e\ufe0f](?!\u20e3)"
)


def safe(text: str) -> str:
    """`text` with everything made visible that would move the cursor, turn the direction round, or hide.

    Tabs and newlines stay, ``\\r\\n`` is a newline. A C1 control is shown as the two characters it stands for
    (ECMA-48, 5.3).
    """
    if text.isascii() and text.isprintable():  # most lines are, and then the pattern need not even be compiled
        return text
    return re.sub(_UNSEEN, _shown, text.replace("\r\n", "\n"))


def safe_line(text: str) -> str:
    """As `safe`, but one line whatever it holds."""
    return safe(text).replace("\n", "␊").replace("\t", " ")


def _shown(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    if code < 0xA0:
        return "␛" + chr(code - 0x40)
    return "�" if 0xD800 <= code <= 0xDFFF else f"⟨U+{code:04X}⟩"
