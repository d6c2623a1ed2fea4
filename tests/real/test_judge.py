"""An independent judge: whatever breaks on the way of an answer, how cass takes it, for each API."""

import json
import os
import subprocess
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("judge")]

BIN = Path(__file__).parent.parent.parent / "bin"
PATHS = {"openai-compatible": "/v1", "openai-responses": "/v1", "anthropic": "/anthropic", "gemini": "/gemini"}
READ_TIMEOUT_S = 4
AT_ONCE = 8
"""Runs side by side: most of each is waiting."""


class Fault(NamedTuple):
    behavior: dict[str, Any]
    status: int = 0
    """Of `cass -p`."""
    requests: int = 3
    """That it makes: one is answered by a call, the next by a text, where nothing else is scripted."""


def stream(kind: str, **more: Any) -> Fault:
    return Fault({"type": "stream_fault", "kind": kind, "after_chunks": 2, **more}, requests=2)


REFUSALS = {
    "429": Fault({"type": "fail", "status": 429, "retry_after": 1, "times": 2}, requests=4),
    "500": Fault({"type": "fail", "status": 500}),
    "503": Fault({"type": "fail", "status": 503, "times": 2}, requests=4),
    "529": Fault({"type": "fail", "status": 529}),
    "400": Fault({"type": "fail", "status": 400}, 1, 1),
    "401": Fault({"type": "fail", "status": 401}, 1, 1),
}
BREAKS = {
    "stall": stream("stall", stall_seconds=3 * READ_TIMEOUT_S),
    "slow": Fault({"type": "slow_first_token", "seconds": 1}, requests=2),
    "truncate": stream("truncate"),
    "disconnect": stream("disconnect"),
    "malformed": stream("malformed"),
    "arguments": Fault({"type": "tool_fault", "kind": "malformed_arguments"}, requests=2),
}
FAULTS = BREAKS | REFUSALS
RUNS = [(kind, name) for name in FAULTS for kind in PATHS if name in BREAKS or kind != "openai-responses"]
"""What a refusal means is found out in one place for all kinds: three of them show it."""


def behaviors(kind: str, name: str) -> list[dict[str, Any]]:
    """For the model of one run alone. What breaks in its middle is a text, twice: a call may come as one chunk."""
    made = [FAULTS[name].behavior]
    if made[0]["type"] == "stream_fault":
        made.append({"type": "reply", "text": "one two three four five six seven eight nine ten", "times": 2})
    return [one | {"match": {"model": f"{name}-{kind}"}} for one in made]


def call(url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data)) as answer:
        return json.load(answer)


def ask(home: Path, kind: str, fault: str) -> tuple[int, str]:
    """Exit status of one message, and all it printed."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    environ = kept | {"HOME": str(home), "KEY": "k"}
    environ |= {"CASS_PROVIDER": f"judged-{kind}", "CASS_MODEL": f"{fault}-{kind}"}
    command = [BIN / "cass", "-p", "list the directory"]
    done = subprocess.run(
        command, env=environ, cwd=home, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120
    )
    return done.returncode, done.stdout + done.stderr


def test_the_judge_finds_no_error_and_the_exit_status_is_right(judge, tmp_path):
    home = tmp_path / ".cass"
    home.mkdir(mode=0o700)
    entries = [
        {"id": f"judged-{kind}", "kind": kind, "base_url": judge + path, "api_key_env": "KEY"}
        for kind, path in PATHS.items()
    ]
    entries = [entry | {"read_timeout_s": READ_TIMEOUT_S} for entry in entries]
    (home / "providers.json").write_text(json.dumps({"providers": entries}))
    call(f"{judge}/_llmock/scenario", {"behaviors": [one for run in RUNS for one in behaviors(*run)]})
    with ThreadPoolExecutor(AT_ONCE) as pool:
        done = list(pool.map(lambda run: ask(tmp_path, *run), RUNS))
    asked = [entry["model"] for entry in call(f"{judge}/_llmock/requests")["requests"]]
    for (kind, name), (status, said) in zip(RUNS, done, strict=True):
        expected = (FAULTS[name].status, FAULTS[name].requests)
        assert (status, asked.count(f"{name}-{kind}")) == expected, f"{name}, {kind}: {said}"
    verdict = call(f"{judge}/_llmock/verdict")
    assert [(one["code"], one["path"]) for one in verdict["findings"]] == []
