import re
from pathlib import Path

import pytest

from cass import commands, completions, manual, synopsis
from cass.cli import PROGRAMS
from cass.commands import At
from cass.composer.keyboard import Keyboard
from cass.composer.pager import Pager
from cass.composer.picker import Picker
from cass.composer.slash import Slash


def test_every_slash_command_and_alias_is_found_and_obeyed():
    for command in commands.SLASH:
        assert callable(getattr(Slash, command.name[1:]))
        for word in (command.name, *command.aliases):
            assert commands.find(word) is command
    assert commands.find("/nothing") is None


def test_a_command_is_known_by_its_beginning_where_no_other_begins_so():
    own = [commands.Command("/hello", "say hello", commands.Runs.COMPOSER), commands.Command("/ne", "", "x")]
    for line, whole in (
        ("/he", "/help"),
        ("/qui", "/exit"),
        ("/mod  x", "/mod  x"),
        ("/mode", "/mode"),
        ("/eff high", "/effort high"),
        ("/ex", "/ex"),
        ("/nothing", "/nothing"),
    ):
        assert commands.completed(line) == whole
    assert [command.name for command in commands.begun("/ex")] == ["/export", "/exit"]
    assert [commands.completed(line, own) for line in ("/he", "/hell x", "/ne")] == ["/he", "/hello x", "/ne"]


ROOT = Path(__file__).parents[1]
OURS = synopsis.programs(PROGRAMS)

OBEYS = {At.DRAFT: Keyboard, At.QUESTION: Keyboard, At.PICKER: Picker, At.TRANSCRIPT: Pager}


@pytest.mark.parametrize("key", commands.KEYS, ids=lambda key: f"{key.at} {key.name}")
def test_every_key_of_the_table_does_something(key):
    assert callable(getattr(OBEYS[key.at], key.does))


@pytest.mark.parametrize("at", At)
def test_no_key_is_pressed_for_two_things(at):
    pressed = [press for key in commands.keys_at(at) for press in key.presses]
    assert len(pressed) == len(set(pressed))


def test_ctrl_b_and_ctrl_a_are_left_to_tmux_and_screen():
    pressed = {press for key in commands.KEYS for way in key.presses for press in way}
    assert not pressed & {"c-a", "c-b"}


def test_the_help_line_names_the_four_keys_of_the_plan():
    line = " · ".join(commands.HELP_LINE)
    assert line == "Shift-Tab mode · Ctrl-J newline · Ctrl-O tool output · Ctrl-C clear/exit"


@pytest.mark.parametrize(
    ("text", "is_command"),
    [
        ("/help", True),
        ("/?", True),
        ("/compact the parser only", True),
        ("/nothing", True),
        ("/usr/bin/env is what?", False),
        ("/", False),
        ("/42", False),
        (" /help", False),
        ("what does /help do", False),
        ("/help\nand more", False),
        ("/exit\n", True),
        ("", False),
    ],
)
def test_a_command_is_one_line_that_begins_with_a_slash_and_a_word(text, is_command):
    assert commands.is_command(text) is is_command


def test_help_rows_hold_every_key_prefix_and_command_in_lines_that_fit_80_columns():
    rows = list(commands.help_rows())
    left = {row[0] for row in rows}
    assert left >= {key.name for key in commands.keys_at(At.DRAFT)} | {command.usage for command in commands.SLASH}
    assert max(len(word) for word in left) + max(len(row[1]) for row in rows) + 4 <= 80


@pytest.mark.parametrize("command", [*commands.SLASH, *commands.SUBCOMMANDS], ids=lambda command: command.name)
def test_a_help_line_is_one_line_without_a_full_stop(command):
    assert re.fullmatch(r"[a-z].*[^.]", command.help)


@pytest.mark.parametrize("folder", ["completions", "man"])
def test_what_is_checked_in_is_what_the_programs_are_now(folder):
    made = {"completions": completions.files(OURS), "man": manual.pages(OURS)}[folder]
    there = {
        str(path.relative_to(ROOT / folder)): path.read_text() for path in (ROOT / folder).rglob("*") if path.is_file()
    }
    there.pop("make.py", None)
    assert there == made, "run: completions/make.py"
