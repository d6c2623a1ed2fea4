"""`cass check`: every fault is named with what to do, and a decision is explained in words."""

import fcntl
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import scripted
from stage import argv, run
from terminal import Pty

from cass import chat, check, inbox, trust
from cass.check import disk, machine
from cass.check.finding import Finding, Level
from cass.errors import UsageError

Found = dict[str, list[tuple[str, str, str]]]


@pytest.fixture
def found(home, capsys) -> Callable[..., Found]:
    """What is found: by what it is about, level, text and advice."""

    def look(*, online: bool = False, status: int = 0, **environ: str) -> Found:
        place = Path.cwd()
        assert check.run(home, place, online=online, as_json=True, environ=os.environ | environ) == status
        by_name: Found = {}
        for one in json.loads(capsys.readouterr().out):
            by_name.setdefault(one["about"], []).append((one["level"], one["text"], one["advice"]))
        return by_name

    return look


def test_a_fresh_machine_has_no_errors_and_nothing_is_made(home, workspace, found):
    got = found()
    assert got["home"] == [("ok", f"{home.root} is not there yet; the first chat makes it", "")]
    assert got["provider"][0][0] == "warning"
    assert not home.root.exists()
    done = run("cass", "check")
    assert done.stdout.splitlines()[0].startswith("ok       home      ")
    assert done.stdout.splitlines()[-1].endswith(("warning", "warnings"))


def test_all_is_found_that_is_needed(home, files, found):
    got = found()
    assert {name for name, all_of in got.items() if any(level == "error" for level, _, _ in all_of)} == set()
    assert got["home"] == [("ok", f"{home.root}, yours alone", "")]
    assert got["chats"] == [("ok", "1, of which 0 have a worker", "")]
    assert got["files"][0][1].startswith("locks, pipes and sockets work")
    assert {
        "disk",
        "model",
        "mode",
        "versions",
        "bash",
        "git",
        "editor",
        "tmux",
        "terminal",
        "locale",
        "logout",
    } <= set(got)
    assert [name for name in os.listdir(home.root) if name.startswith(".check")] == []


def test_what_others_can_read_is_said_and_an_open_file_of_keys_is_an_error(home, files, found):
    home.root.chmod(0o755)
    home.config.write_text("{}")
    home.config.chmod(0o644)
    home.providers.write_text('{"providers": []}')
    home.providers.chmod(0o644)
    got = found(status=1)["home"]
    assert [(level, advice) for level, _, advice in got] == [
        ("warning", f"chmod 700 {home.root}"),
        ("warning", f"chmod 600 {home.config}"),
        ("error", f"chmod 600 {home.providers}"),
    ]


def test_an_entry_for_a_model_that_nothing_is_known_of_can_be_copied(home, workspace, found):
    home.make()
    home.providers.write_text('{"providers": [{"id": "work", "base_url": "http://127.0.0.1:9/v1"}]}')
    home.providers.chmod(0o600)
    named = {"CASS_PROVIDER": "work", "CASS_MODEL": 'la"rge'}
    ((level, _, advice),) = found(**named)["model"]
    entry = advice.partition("models.json: ")[2].replace("TOKENS", "131072")
    home.models.write_text(entry)
    assert (level, found(**named)["model"][0][0]) == ("warning", "ok")


def test_each_file_is_checked_by_itself(home, found):
    home.make()
    home.config.write_text('{"layout": "sideways", "colour": 1}')
    home.providers.write_text("{")
    home.models.write_text('{"models": [{"id": "m", "context": 5}]}')
    home.trust.write_text("[]")
    got = found(status=1)
    texts = [text for _, text, _ in got["config"]]
    assert f'{home.config}: "layout": expected one of inline, panes' in texts
    assert any(text.startswith(f"{home.providers}: line 1") for text in texts)
    hints = {text: hint for _, text, hint in got["config"]}
    assert hints[f'{home.models}: m: unknown key "context"'] == 'did you mean "context_length"?'
    assert any(text.startswith(f"{home.trust}: expected") for text in texts)
    assert got["provider"][0][0] == "error"


def test_a_missing_key_names_its_variable_and_no_key_is_ever_shown(home, workspace, found):
    (key,) = found(status=1, CASS_PROVIDER="groq")["key"]
    assert key[:2] == ("error", "GROQ_API_KEY is not set")
    done = run("cass", "check", env=os.environ | {"CASS_PROVIDER": "groq", "GROQ_API_KEY": "gsk-secret-0123456789"})
    assert "found in GROQ_API_KEY" in done.stdout
    assert "gsk-secret" not in done.stdout + done.stderr


def served(home, base_url: str) -> None:
    home.make()
    entry = {"id": "mine", "kind": "openai-compatible", "base_url": base_url, "api_key_env": "MINE"}
    home.providers.write_text(json.dumps({"providers": [entry | {"default_model": "m"}]}))
    home.providers.chmod(0o600)


KEY = "sk-online-0123456789"


@pytest.mark.parametrize(
    ("models", "key", "path", "level", "said", "advice"),
    [
        (("a", "m"), KEY, "/v1", "ok", "it lists 2 models", ""),
        (("a",), KEY, "/v1", "warning", "and not m", "cass setup"),
        (("m",), "another", "/v1", "error", "401", "check MINE"),
        (("m",), KEY, "/v2", "error", "404", "check base_url"),
    ],
    ids=["fine", "another model", "wrong key", "wrong address"],
)
def test_online_asks_the_server_and_says_what_to_do(home, models, key, path, level, said, advice, found):
    with scripted.Server([], models=models, key=key) as server:
        served(home, server.base_url.replace("/v1", path))
        got = found(online=True, status=int(level == "error"), CASS_PROVIDER="mine", MINE=KEY)
    ((found_level, text, what),) = got["online"]
    assert (found_level, said in text, advice in what) == (level, True, True)
    assert KEY not in json.dumps(got)


OWN = """#!/bin/sh
echo '{"name": "%s", "description": "x", "does": "reads", "parameters": {"type": "object"}}'
"""


def test_what_extends_cass_is_listed_with_what_is_wrong_with_it(home, workspace, found):
    home.make()
    forgotten = workspace / "forgotten"
    forgotten.write_text("#!/bin/sh\n")
    turn_end = ["beep", str(forgotten), "/bin/sh -c 'exit 0'"]
    hooks = {"before-tool": [{"run": "~/no-push", "tools": ["shell"]}], "turn-end": turn_end}
    home.config.write_text(json.dumps({"hooks": hooks, "ask": ["ticket", "tickets(x)"], "deny": ["shel(rm *)"]}))
    servers = {
        "files": {"command": "sh"},
        "gone": {"command": "no-such-program"},
        "far": {"url": "https://u:p@x.y/k?q"},
    }
    home.mcp.write_text(json.dumps({"mcpServers": servers | {"odd": {}}}))
    (home.root / "tools").mkdir()
    for name in ("ticket", "shell"):
        path = home.root / "tools" / name
        path.write_text(OWN % name)
        path.chmod(0o700)
    got = found(status=1)  # mcp.json is open to others
    gone = Path("~/no-push").expanduser()
    assert got["hooks"] == [
        ("warning", f"before-tool (shell): ~/no-push: there is no {gone}, so it does nothing", ""),
        ("ok", "turn-end: beep", ""),
        ("warning", f"turn-end: {forgotten}: it is not executable, so it does nothing", f"chmod +x {forgotten}"),
        ("ok", "turn-end: /bin/sh -c 'exit 0'", ""),
    ]
    assert [(level, text.partition(",")[0]) for level, text, _ in got["mcp"]] == [
        ("ok", "files: sh"),
        ("warning", "gone: no-such-program"),
        ("ok", "far: https://x.y/…"),
        ("warning", f'{home.mcp}: "mcpServers": \'odd\' is not used: expected either "command" or "url"'),
    ]
    assert got["tools"][0] == ("ok", "ticket: reads", "")
    assert "there is a tool shell already" in got["tools"][1][1]
    assert [text.partition(" speaks of no tool")[0] for _, text, _ in got["rules"]] == [
        '"ask": tickets(x)',
        '"deny": shel(rm *)',
    ]


def test_every_directory_that_configures_this_one_is_named(home, workspace, found, monkeypatch):
    home.make()
    (workspace / ".git").mkdir()
    below = workspace / "below"
    for place in (workspace, below):
        (place / ".cass").mkdir(parents=True)
        (place / ".cass" / "config.json").write_text('{"ask": ["grep"]}')
        trust.give(trust.standing(place, home), home)
    monkeypatch.chdir(below)
    assert found()["project"] == [("ok", f"{workspace}, {below}: as you trusted it; it asks 2 and denies 0 more", "")]


def test_prompts_and_skills_are_listed_with_what_lies_there_and_is_none(home, workspace, found):
    home.make()
    for name, text in {"review": "Read $1.", "help": "mine", "empty": "", "no name": "x", "long": "x" * 70_000}.items():
        path = home.root / "prompts" / f"{name}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    skill = "---\nname: form\ndescription: Fills forms.\n---\nx"
    texts = {"form": skill, "twin": skill, "Bad.Name": "x", "empty": "", "long": "x" * 140_000}
    for name, text in texts.items():
        path = home.root / "skills" / name / "SKILL.md"
        path.parent.mkdir(parents=True)
        path.write_text(text)
    (home.root / "skills" / "none").mkdir()
    got = found()
    assert got["prompts"][0] == ("ok", "/review", "")
    assert got["skills"][0] == ("ok", "form", "")
    whys = {
        Path(text.partition(" is not used: ")[0]).relative_to(home.root).as_posix(): text.partition(" is not used: ")[2]
        for level, text, _ in (*got["prompts"][1:], *got["skills"][1:])
    }
    assert whys == {
        "prompts/empty.md": "it has no text to send",
        "prompts/help.md": "/help is a command of cass",
        "prompts/long.md": "it has more than 65,536 bytes",
        "prompts/no name.md": "its name is none: a letter, then letters, digits, _ and -, 64 at most",
        "skills/Bad.Name/SKILL.md": '"name": expected letters, digits, _ and -, 64 at most',
        "skills/empty/SKILL.md": "it has no description",
        "skills/long/SKILL.md": "it has more than 131,072 bytes",
        "skills/none/SKILL.md": "there is no such file, or none that can be read",
        "skills/twin/SKILL.md": f"there is a skill form already: {home.root / 'skills' / 'form' / 'SKILL.md'}",
    }


@pytest.mark.parametrize(
    ("levels", "said"),
    [
        ([Level.OK], "everything is fine"),
        ([Level.ERROR, Level.WARNING], "1 error, 1 warning"),
        ([Level.WARNING, Level.WARNING], "0 errors, 2 warnings"),
    ],
)
def test_the_last_line_counts(levels, said):
    found = [Finding("x", level, "y") for level in levels]
    assert check.as_lines(found).split("\n")[-1] == said


def test_without_online_no_server_hears_anything(home, found):
    with scripted.Server([]) as server:
        served(home, server.base_url)
        assert "online" not in found(CASS_PROVIDER="mine", MINE="k")
        assert server.asked == []


def test_there_is_nothing_to_ask_where_cass_answers_itself_or_starts_the_server(found):
    assert "online" not in found(online=True, CASS_PROVIDER="demo")
    assert "online" not in found(online=True, CASS_PROVIDER="local", CASS_MODEL="model.gguf")


def test_a_server_that_is_not_there_is_an_error(home, found):
    with scripted.Server([]) as server:
        served(home, server.base_url)
    ((level, _, advice),) = found(online=True, status=1, CASS_PROVIDER="mine", MINE="k")["online"]
    assert (level, "is it running" in advice) == ("error", True)


def test_what_is_left_of_chats_that_are_gone_and_messages_that_wait_are_said(home, files, found):
    (home.root / "run" / "2020-01-01-000000-dead").mkdir(parents=True)
    files.make()
    inbox.put(files, {"type": "message", "content": "hello"})
    got = [(text, advice) for level, text, advice in found()["chats"] if level == "warning"]
    assert got[0] == (f"messages wait in {files.chat_id}, where no worker runs", f"cass --resume {files.chat_id}")
    assert "2020-01-01-000000-dead" in got[1][0]


def test_a_running_worker_is_counted(home, files, found):
    held = chat.Chat(files, "read-only")
    try:
        assert found()["chats"][0][1] == "1, of which 1 have a worker"
    finally:
        held.close()


def test_programs_that_are_missing_are_said(home, tmp_path, found):
    got = found(status=1, PATH=str(tmp_path), VISUAL="nothing-of-that-name -w")
    assert got["bash"][0][0] == "error"
    assert got["git"][0][0] == "warning"
    assert got["editor"] == [
        (
            "warning",
            "nothing-of-that-name -w is not there: Ctrl-G cannot open it",
            "set VISUAL or EDITOR to another one",
        )
    ]
    assert got["tmux"][0][0] == "ok"


@pytest.mark.parametrize(
    ("environ", "about", "level"),
    [
        ({"TERM": "dumb"}, "terminal", "warning"),
        ({"TERM": "xterm-256color", "LC_ALL": "C"}, "locale", "warning"),
        ({"LC_ALL": "de_DE.utf8"}, "locale", "ok"),
        ({"TMUX": "/nowhere,1,0"}, "tmux", "ok"),
    ],
)
def test_a_terminal_that_limits_is_said(home, workspace, environ, about, level):
    terminal = Pty(argv("cass", "check"), os.environ | environ, columns=200)
    assert terminal.end() == 0
    line = next(line for line in terminal.said.decode().splitlines() if line[9:].startswith(about))
    terminal.close()
    assert line.split()[0] == level
    assert environ.get("TMUX") is None or "popup" in line


# ---- what is pure ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "user", "killed"),
    [
        ([], "p", False),
        (["[Login]\n#KillUserProcesses=yes\n"], "p", False),
        (["[Login]\nKillUserProcesses=yes\n"], "p", True),
        (["[Login]\nKillUserProcesses=yes\n"], "root", False),
        (["KillUserProcesses=yes\n", "KillUserProcesses=no\n"], "p", False),
        (["KillUserProcesses=yes\nKillOnlyUsers=a b\n"], "p", False),
        (["KillUserProcesses=yes\nKillOnlyUsers=a p\n"], "p", True),
        (["KillUserProcesses=1\nKillExcludeUsers=p\n"], "p", False),
    ],
)
def test_whether_a_logout_ends_workers_is_what_logind_says(texts, user, killed):
    assert machine.is_killed(texts, user) == killed


@pytest.mark.parametrize(
    ("version", "old"),
    [("3.2a", True), ("2.9", True), ("3.3", False), ("3.3a", False), ("next-3.6", False), ("x", False)],
)
def test_an_old_tmux_is_known(version, old):
    assert machine.is_old(version) == old


def test_a_file_system_is_known_by_the_nearest_mount(tmp_path):
    mounts = tmp_path / "mounts"
    mounts.write_text("a / ext4 rw 0 0\nb /home nfs4 rw 0 0\nc /home/p\\040q fuse.sshfs rw 0 0\n")
    kinds = [disk.file_system(path, mounts) for path in ("/x", "/home/a", "/home/p q/r", "/homes")]
    assert kinds == ["ext4", "nfs4", "fuse.sshfs", "ext4"]


def test_a_file_system_without_locks_or_pipes_is_an_error(home, monkeypatch):
    home.make()

    def refuse(*_: object) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(os, "mkfifo", refuse)
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)
    texts = [one.text for one in disk.look(home, home.root) if one.level is Level.ERROR]
    assert [text.partition(" in ")[0] for text in texts] == ["no pipes can be used", "no locks can be used"]


# ---- decisions in words ---------------------------------------------------------------------------------------------


@pytest.fixture
def ruled(home, workspace):
    home.make()
    config = {"allow": ["shell(git status)", "shell(ls*)", "shell(xargs *)"], "ask": ["shell(git push*)"]}
    home.config.write_text(json.dumps(config | {"deny": ["shell(rm *)", "read(*/secret/*)"]}))
    return workspace


@pytest.fixture
def explained(home, ruled, capsys) -> Callable[[str], list[str]]:
    def explain(question: str) -> list[str]:
        check.explain(question, home, ruled, as_json=False)
        return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]

    return explain


def test_a_decision_about_a_command_is_explained_part_by_part(ruled, explained):
    lines = explained("shell: git status && rm -rf / | ls; git push; make")
    assert lines[:6] == [
        "shell: git status && rm -rf / | ls; git push; make",
        "git status allowed by shell(git status)",
        "rm -rf / denied by shell(rm *)",
        "ls allowed by shell(ls*)",
        "git push asked by shell(git push*)",
        "make no rule allows it",
    ]
    assert lines[6].startswith("read-only denied shell is unavailable")
    assert lines[7:9] == [f"{mode} denied the rule shell(rm *) denies it" for mode in ("workspace-edit", "full-access")]
    assert "can never match: xargs runs" in lines[9]


def test_what_cannot_be_taken_apart_says_why(ruled, explained):
    lines = explained("shell: ls $(pwd)")
    assert lines[1] == "it cannot be taken apart for certain: an expansion, which $ begins"
    assert lines[4:6] == ["workspace-edit asked workspace-edit mode asks before every command", "full-access allowed"]
    assert "workspace-edit allowed by shell(git status), shell(ls*)" in explained("shell: git status; ls -l")


def test_a_decision_about_a_path_says_where_it_leads(ruled, explained):
    (ruled / "link").symlink_to("/etc")
    lines = explained("read: link/passwd")
    assert lines[1] == "/etc/passwd, outside the workspace"
    assert lines[3].startswith("workspace-edit asked it reads /etc/passwd")
    assert "which other programs run or trust" in explained("write: ./a/../.envrc")[1]
    assert explained("grep: /x/secret/y")[4:5] == ["full-access allowed"]
    assert explained("read: /x/secret/y")[4:5] == ["full-access denied the rule read(*/secret/*) denies it"]


def test_a_decision_about_a_url_says_what_it_means(home, workspace, explained):
    home.make()
    home.config.write_text('{"allow": ["fetch(https://docs.python.org/*)"]}')
    lines = explained("fetch: HTTPS://Docs.Python.ORG:443/3/../a")
    assert lines[1] == "https://docs.python.org/a"
    by_rule = "allowed by fetch(https://docs.python.org/*)"
    assert lines[2:] == [f"read-only {by_rule}", f"workspace-edit {by_rule}", "full-access allowed"]
    lines = explained("fetch: https://docs.python.org.evil.example/")
    assert lines[2].startswith("read-only denied read-only mode runs fetch only where a rule of the user allows")
    assert lines[3] == "workspace-edit asked workspace-edit mode asks before every fetch"


@pytest.mark.parametrize("question", ["git status", "fly: x", "shell:", ": x"])
def test_a_question_that_is_none_says_what_is_expected(explained, question):
    with pytest.raises(UsageError, match="expected 'TOOL: COMMAND, PATH OR URL'"):
        explained(question)


def test_a_decision_as_json(ruled):
    done = run("cass", "check", "--json", "--rules", "shell: ls; rm x")
    said = json.loads(done.stdout)
    assert said["parts"] == [
        {"text": "ls", "rules": "allowed by shell(ls*)"},
        {"text": "rm x", "rules": "denied by shell(rm *)"},
    ]
    assert said["decisions"]["full-access"] == {"outcome": "denied", "reason": "the rule shell(rm *) denies it"}
