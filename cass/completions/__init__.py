"""Completions: a script for each shell, made from the table of programs, and the files that an installation has."""

from collections.abc import Callable, Mapping

from cass.completions import bash, fish, zsh
from cass.synopsis import Program

SHELLS: dict[str, Callable[[Mapping[str, Program]], str]] = {
    "bash": bash.script,
    "zsh": zsh.script,
    "fish": fish.script,
}
"""What makes the script of each."""


def files(programs: Mapping[str, Program]) -> dict[str, str]:
    """Path below ``completions/`` and text of each file. bash and fish look for one that is named as the program."""
    places = {"bash": "bash/cass", "zsh": "zsh/_cass", "fish": "fish/cass.fish"}
    made = {places[shell]: script(programs) for shell, script in SHELLS.items()}
    for name in programs:
        if name != "cass":
            made[f"bash/{name}"] = '. "${BASH_SOURCE[0]%/*}/cass"\n'
            made[f"fish/{name}.fish"] = "source (status dirname)/cass.fish\n"
    return made
