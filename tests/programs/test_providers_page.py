"""Providers and keys as the README and docs/providers.md show them: each command works as it stands."""

import json
import re
import subprocess
from pathlib import Path

import pytest
import scripted
import spoken

from cass.known import PROVIDERS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PAGE = (ROOT / "docs" / "providers.md").read_text()
ASKS = [
    block for block in re.findall(r"^```sh\n(.*?)^```", README, re.M | re.S) if re.search(r"_KEY=\S+(\n| cass)", block)
]
"""How a provider is asked, in the order of the README."""
COMMANDS = re.findall(r"^    (cass .*?)(?:  .*)?$", PAGE, re.M)
KEY = "sk-good-0123456789"


def shell(command: str, home: Path, **environ: str) -> "subprocess.CompletedProcess[str]":
    """What a person copies, in a directory and with a home of their own."""
    kept = {"HOME": str(home), "PATH": f"{ROOT / 'bin'}:/usr/local/bin:/usr/bin:/bin"}
    null, all_of_it = subprocess.DEVNULL, {"capture_output": True, "text": True, "timeout": 60}
    return subprocess.run(["bash", "-ec", command], env=kept | environ, cwd=home, stdin=null, **all_of_it)


def moved(home: Path, **urls: str) -> None:
    """Have built-in providers asked at these addresses."""
    (home / ".cass").mkdir(mode=0o700)
    entries = [
        {"id": id, "base_url": url, "kind": PROVIDERS[id].kind, "api_key_env": PROVIDERS[id].key}
        for id, url in urls.items()
    ]
    (home / ".cass/providers.json").write_text(json.dumps({"providers": entries}))
    (home / ".cass/providers.json").chmod(0o600)


def test_the_pages_have_the_commands_that_are_tested_here():
    assert (len(ASKS), len(COMMANDS)) == (7, 10)


@pytest.mark.parametrize("block", ASKS, ids=lambda block: re.search(r"-P (\w+)|$", block)[1] or block.split()[1])
def test_a_provider_is_asked_as_the_readme_shows_it(block, tmp_path):
    chosen = re.search(r"-P (\w+)", block)
    known = PROVIDERS[chosen[1] if chosen else "fireworks"]
    path = spoken.PATHS[known.kind].replace("/m:", f"/{known.model}:")
    with scripted.Server([spoken.answer(known.kind, "the answer")], path=path) as server:
        moved(tmp_path, **{known.id: server.url})
        done = shell(block, tmp_path, MY_SERVER=server.base_url)
    assert (done.returncode, done.stdout) == (0, "the answer\n"), done.stderr
    key = re.search(r"_KEY=(\S+)", block)[1]
    assert any(key in value for _, value in server.asked[0].headers)


def test_a_provider_is_set_up_and_its_key_kept_and_forgotten_as_the_page_shows_it(tmp_path):
    environ = {"OPENAI_API_KEY": KEY, "MY_OPENAI_KEY": KEY, "WORK_KEY": KEY}
    (tmp_path / "key.txt").write_text(f"{KEY}\n")
    said = []
    with scripted.Server([], models=("gpt-5.1", "other"), key=KEY) as server:
        moved(tmp_path, openai=server.base_url)
        for command in COMMANDS:
            if command.startswith(("cass setup", "cass login", "cass logout")) and "--keyring" not in command:
                done = shell(command.replace("https://models.example.com/v1", server.base_url), tmp_path, **environ)
                assert done.returncode == 0, done.stderr
                said.append(done.stdout)
    assert ["default_model = gpt-5.1" in text for text in said[:2]] == [True, True]
    assert ["the key works" in text for text in said[2:]] == [True, True, False]
    assert "forgotten" in said[-1]
    assert KEY not in "".join(said) + (tmp_path / ".cass/providers.json").read_text()


def test_what_was_spent_is_told_as_the_page_shows_it(tmp_path):
    usage = {"prompt_tokens": 1_000, "completion_tokens": 100, "total_tokens": 1_100}
    (facts,) = re.findall(r"^    (\{\"models\".*?\}\]\})", PAGE, re.M | re.S)
    with scripted.Server([scripted.step({"text": "ok", "usage": usage})] * 2) as server:
        moved(tmp_path)
        entry = {"id": "work", "base_url": server.base_url, "default_model": "large"}
        (tmp_path / ".cass/providers.json").write_text(json.dumps({"providers": [entry]}))
        (tmp_path / ".cass/models.json").write_text(facts)
        asked = shell("cass -P work -p one --max-cost 0.50", tmp_path)
        assert asked.returncode == 0, asked.stderr
        by_all, by_model, as_json = (shell(command, tmp_path) for command in COMMANDS if "stats" in command)
    assert [done.returncode for done in (by_all, by_model, as_json)] == [0, 0, 0]
    assert "$0.0007" in by_all.stdout
    assert "large" in by_model.stdout
    assert json.loads(as_json.stdout)["total"]["cost"] == 0.0007
