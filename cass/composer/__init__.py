"""The composer: keys, draft, history, commands and approvals, at one terminal."""

import sys
from types import ModuleType


class _Unused(ModuleType):
    """A module that others import names from, and that nothing here calls."""

    def __getattr__(self, name: str) -> None:
        if name.startswith("__"):
            raise AttributeError(name)


# prompt_toolkit loads its ready-made prompts, dialogs and progress bars, and an XML parser for their markup, whoever
# uses what of it: a tenth of what it costs to draw the prompt.
for _name in ("prompt_toolkit.shortcuts", "xml.dom"):
    sys.modules.setdefault(_name, _Unused(_name))
sys.modules.setdefault("xml.dom.minidom", _Unused("xml.dom.minidom"))
