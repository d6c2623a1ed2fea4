"""One chat, several servers: each is told the whole history in its own words, and its own thoughts as they came."""

import json
import os
import subprocess

import pytest

from cass import inbox, send
from cass.home import Home
from tests import scripted, spoken
from tests.stage import ROOT

THOUGHTS = {"openai-responses": "encrypted_content", "anthropic": "signature", "gemini": "thoughtSignature"}


@pytest.mark.parametrize("is_one_worker", [False, True], ids=["a worker for each message", "one worker"])
def test_a_chat_goes_from_server_to_server_and_back_with_calls_and_thoughts_in_its_history(tmp_path, is_one_worker):
    step = {"id": "call.with/odd:id", "name": "ls", "arguments": {"path": "."}}
    servers = {
        kind: scripted.Server(
            [spoken.answer(kind, "I look.", step), *[spoken.answer(kind, f"by {kind}")] * 2], path=path
        )
        for kind, path in spoken.PATHS.items()
    }
    entries = [{"id": f"by-{kind}", "kind": kind, "base_url": server.url} for kind, server in servers.items()]
    (tmp_path / ".cass").mkdir(mode=0o700)
    (tmp_path / ".cass/providers.json").write_text(json.dumps({"providers": entries}))
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "CASS_MODEL": "m"}
    home = Home(tmp_path / ".cass")
    chat = ""
    for server in servers.values():
        server.__enter__()
    try:
        for number, kind in enumerate([*servers, *servers]):
            command = [ROOT / "bin/cass", "-P", f"by-{kind}", "-p", f"Message {number}."]
            if chat and is_one_worker:
                inbox.put(home.files(chat), {"type": "model", "provider": f"by-{kind}", "model": "m"})
                command = [ROOT / "bin/cass-send", chat, "--wait", f"Message {number}."]
            elif chat:
                command += ["--resume", chat]
            done = subprocess.run(
                command, env=environ, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
            )
            assert (done.returncode, done.stdout.strip()) == (0, f"by {kind}"), done.stderr
            (path,) = (tmp_path / ".cass/conversations").iterdir()
            chat = path.stem
    finally:
        if is_one_worker:
            send.stop(home.files(chat), 20)
        for server in servers.values():
            server.__exit__()
    assert servers["openai-compatible"].problems == []
    for kind, server in servers.items():
        assert len(server.asked) == 3
        last = server.asked[-1].raw.decode()
        assert all(f"Message {number}." in last for number in range(5 + list(servers).index(kind) - 1))
        assert last.count("I look.") == len(servers)
        for other, mark in THOUGHTS.items():
            signed = f'"{mark}":"{spoken.SIGNED}"'
            assert (signed in last) == (other == kind)
