"""Completions in the real shells, and man pages: they are what the table of programs says, and they work."""

import os
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from stage import run
from terminal import Pty

from cass import chat, completions, manual, records, synopsis
from cass.cli import PROGRAMS
from cass.home import Home
from cass.records import User

ROOT = Path(__file__).parents[1]
OURS = synopsis.programs(PROGRAMS)
AT = "2026-06-20T12:00:00.000Z"
SAID = 'fix "it"\nin C:\\x\x1b[31m ünïcode'
SHOWN = 'fix "it" in C:x[31m ünïcode'


def needs(program):
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed")


@pytest.fixture
def chats(home: Home, workspace):
    """Two chats, the second one used last, which nobody has said anything in."""
    made = [chat.create(home, cwd=workspace, provider="demo", model="demo", system="s" * 10_000) for _ in range(2)]
    with open(made[0].chat, "ab") as file:
        file.write(records.encode(User(id="u", content=SAID, created_at=AT)))
    os.utime(made[0].chat, (1, 1))
    return [files.chat_id for files in made]


def environ(**more):
    return os.environ | {"LC_ALL": "C.UTF-8"} | more


@pytest.mark.parametrize("shell", completions.SHELLS)
def test_a_program_prints_the_script_of_a_shell(shell):
    printed = run("cass", "completion", shell)
    assert printed.stdout == completions.SHELLS[shell](OURS)


def test_an_installation_has_them_where_shells_and_man_look():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    data = project["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    assert all((ROOT / source).exists() for source in data)
    shells = {"share/bash-completion/completions", "share/zsh/site-functions", "share/fish/vendor_completions.d"}
    assert set(data.values()) == shells | {"share/man/man1"}


# ---- bash -----------------------------------------------------------------------------------------------------------

CASES = [
    ("cass --res", ["--resume"]),
    ("cass stat", ["stats", "status"]),
    ("cass ls --", ["--all", "--help", "--json", "--tree"]),
    ("cass --effort ", ["high", "low", "medium", "off"]),
    ("cass -P ollama --layout ", ["inline", "panes"]),
    ("cass export --format ", ["html", "json", "md"]),
    ("cassady branch --dr", ["--dry-run"]),
    ("cass-view --color a", ["always", "auto"]),
    ("cass login fir", ["fireworks"]),
    ("cass setup --provider oll", ["ollama"]),
    ("cass export --output ap", ["app.py"]),
    ("cass --cwd s", ["sub dir"]),
    ("cass completion ", ["bash", "fish", "zsh"]),
    ("cass grep x", []),
]


def bash(line: str, type: int = 9) -> list[str]:
    """What bash would offer at the end of a line."""
    words = line.split(" ")
    setting = f"COMP_WORDS=({shlex.join(words)}) COMP_CWORD={len(words) - 1} COMP_TYPE={type}"
    code = f'. {shlex.quote(str(ROOT / "completions/bash/cass"))}; {setting}; _cass; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, env=environ(), timeout=20)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1] if done.stdout.strip() else []


@pytest.mark.parametrize(("line", "offered"), CASES)
def test_bash_offers_what_may_stand_there(line, offered, workspace):
    (workspace / "sub dir").mkdir()
    assert sorted(bash(line)) == offered


def test_bash_offers_chats_with_what_they_are_about_where_it_lists_them(chats):
    first, last = chats
    assert bash("cass --resume ")[:2] == [last, first]
    assert bash("cass-send ") == [last, first]
    assert bash("cass export -o x ", type=63) == [last, f"{first} {SHOWN}"]
    assert bash(f"cass wait {first}", type=63) == [first]
    assert bash(f"cass wait {first[-4:]}") == ([first] if first[-4:] not in last else [])


def test_chats_of_agents_are_not_offered(chats, home, workspace):
    chat.create(home, cwd=workspace, provider="demo", model="demo", system="s", agent_of=chats[0], depth=1)
    assert bash("cass-send ") == chats[::-1]


def test_bash_on_a_terminal_completes_as_a_person_types(chats, tmp_path, workspace):
    rc = tmp_path / "rc"
    loaded = f". {ROOT}/completions/bash/cass-send\n. {ROOT}/completions/bash/cass\n"
    rc.write_text(loaded + "PS1='$ '\ncass() { echo \"<$*>\"; }\n")
    terminal = Pty(["bash", "--rcfile", str(rc), "-i"], environ(HISTFILE=""), columns=200)
    try:
        terminal.until("$ ")
        terminal.type("cass wai\t" + chats[0][:21] + "\t\r")
        terminal.until("<wait ")
        terminal.type("cass export --format h\t\r")
        terminal.until("<export --format html>")
    finally:
        terminal.close()


# ---- fish and zsh ---------------------------------------------------------------------------------------------------


def fish(line: str) -> dict[str, str]:
    """What fish offers, and what it says about each."""
    code = f"source {ROOT}/completions/fish/cass.fish; complete -C {shlex.quote(line)}"
    done = subprocess.run(
        ["fish", "--no-config", "-c", code], capture_output=True, text=True, env=environ(), timeout=20
    )
    assert (done.returncode, done.stderr) == (0, "")
    return dict(entry.partition("\t")[::2] for entry in done.stdout.splitlines())


@needs("fish")
@pytest.mark.parametrize(("line", "offered"), CASES)
def test_fish_offers_what_may_stand_there(line, offered, workspace):
    (workspace / "sub dir").mkdir()
    found = {name.removesuffix("/") for name in fish(line)}
    assert found >= set(offered)
    assert len(found) <= len(offered) + 1  # `-h` beside `--help`


@needs("fish")
def test_fish_says_what_each_is_about(chats):
    first, last = chats
    assert fish("cass --resume ").items() >= {last: "", first: SHOWN}.items()
    assert fish("cass-view ") == {last: "", first: SHOWN}
    assert fish(f"cass export {first[-4:]}").get(first) == SHOWN
    assert fish("cass sta")["status"] == "Show what each chat does, and what waits for you"


@pytest.fixture
def zsh(tmp_path, workspace):
    """A zsh on a terminal that has loaded the completions."""
    (tmp_path / ".zshrc").write_text(
        f"fpath=({ROOT}/completions/zsh $fpath)\nautoload -U compinit && compinit -D -u\nPS1='$ '\nLISTMAX=0\n"
        "zstyle ':completion:*' list-colors ''\nunsetopt beep\nbindkey -e\n"
        'cass() { echo "<$*>" }\n'
    )
    (workspace / "sub dir").mkdir()
    terminal = Pty(["zsh", "-i"], environ(ZDOTDIR=str(tmp_path), HISTFILE=""), rows=60, columns=160)
    terminal.until("$ ")
    yield terminal
    terminal.close()


@needs("zsh")
def test_zsh_completes_and_says_what_each_is_about(zsh, chats):
    first, last = chats
    for typed, shown in [
        ("cass --res\t\r", "<--resume>"),
        ("cass completion z\t\r", "<completion zsh>"),
        ("cass export --format ht\t\r", "<export --format html>"),
        ("cass --effort hi\t\r", "<--effort high>"),
        ("cass --cwd s\t\r", "<--cwd sub dir>"),
        (f"cass export {first[-4:]}\t\r", f"<export {first}"),
        ("cass statu\t\r", "<status>"),
    ]:
        zsh.said = b""
        zsh.type(typed)
        zsh.until(shown)
        zsh.until("$ ")
    for typed, *shown in [
        ("cass sta\t\t", "show what each chat does, and what waits for you"),
        ("cass wait \t\t", last, SHOWN),
        ("cass --ma\t\t", "Stop a turn after N requests"),
    ]:
        zsh.said = b""
        zsh.type(typed)
        for words in shown:
            zsh.until(lambda words=words: words.lower().encode() in zsh.said.lower())
        zsh.type("\x15")


@needs("zsh")
def test_zsh_takes_it_from_the_program_too(tmp_path):
    code = f"autoload -U compinit && compinit -D -u; . {ROOT}/completions/zsh/_cass; print $_comps[cass-send]"
    done = subprocess.run(["zsh", "-f", "-c", code], capture_output=True, text=True, env=environ(), timeout=20)
    assert (done.stdout, done.stderr) == ("_cass\n", "")


def test_ten_thousand_chats_are_no_burden_and_the_last_used_come_first(home, workspace):
    made = chat.create(home, cwd=workspace, provider="demo", model="demo", system="s")
    for number in range(300):
        os.link(made.chat, made.chat.with_name(f"2026-06-20-120000-{number:04x}.jsonl"))
    (home.conversations / "$(touch gone).jsonl").write_text("")
    found = bash("cass wait ")
    assert 0 < len(found) <= 200
    assert not (home.conversations / "gone").exists()
    assert all(re.fullmatch(r"[0-9a-f-]+", name) for name in found)


# ---- man pages ------------------------------------------------------------------------------------------------------


@needs("groff")
@pytest.mark.parametrize("name", [name for name in manual.pages(OURS) if name != "cassady.1"])
def test_a_man_page_is_set_without_a_warning(name):
    command = ["groff", "-man", "-Tutf8", "-ww", "-rLL=78n", "-P-c", str(ROOT / "man" / name)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stderr) == (0, "")
    plain = re.sub(".\b", "", done.stdout)
    program = OURS[name.removesuffix(".1")]
    for option in program.options:
        assert ", ".join(option.names) in plain.replace("\N{HYPHEN}", "-")
    for command in program.commands:
        assert f"{program.name} {command.name}" in plain


def test_the_statuses_of_the_man_pages_are_those_of_the_documentation():
    documented = re.findall(r"^\| (\d+) \|", (ROOT / "docs" / "scripting.md").read_text(), re.MULTILINE)
    assert [status for status, _ in manual.STATUSES] == documented
