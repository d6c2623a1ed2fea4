"""What no other agent can do, with shell one-liners only: the top of the README, run line by line."""

import os
import subprocess
from pathlib import Path

import pytest
from stage import ROOT

TMUX = "tmux -L cass-demonstration -f /dev/null"

STORY = r"""
set -euo pipefail
screens() { $TMUX list-panes -F '#{pane_id}' | while read -r pane; do $TMUX capture-pane -p -t "$pane"; done; }

# Start a chat in a terminal, say hello, close the terminal.
$TMUX new-session -d -x 100 -y 30 -c "$WORK" 'cass --workspace-edit'
until cass ls --json | jq -e 'length == 1' >/dev/null 2>&1; do sleep 0.1; done
chat=$(cass ls --json | jq -r '.[0].chat_id')
until screens | grep -q 'Ctrl-J newline'; do sleep 0.1; done
$TMUX send-keys 'where is main defined?' Enter
until screens | grep -q 'app.py:1:def main'; do sleep 0.1; done
$TMUX kill-server
cass status --json "$chat" | jq -e '.[0].state == "idle"' >/dev/null

# From cron: send it a message, wait with a timeout, branch on the exit status. Nobody has approved yet: 124.
cass-send "${chat: -4}" --ask --wait --timeout 2 'run echo built >> built.txt; sleep 30' && exit 1 || [ $? -eq 124 ]

# Watch it from two panes.
$TMUX new-session -d -x 100 -y 20 -c "$WORK" "cass-view $chat"
$TMUX split-window -c "$WORK" "cass-view $chat --full"
until [ "$(screens | grep -c 'built.txt')" -ge 2 ]; do sleep 0.1; done

# Answer its approval from another pane, or over ssh.
cass approve "$chat" "$(cass status --json "$chat" | jq -r '.[0].pending[0].request_id')"
until [ -s built.txt ]; do sleep 0.1; done

# kill -9 the worker in the middle of the tool call, and start it again: nothing runs twice by itself.
kill -9 "$(jq .pid "$CASS_HOME/run/$chat/lock")"
cass wait "$chat" --timeout 5 && exit 1 || [ $? -eq 69 ]
cass-send "$chat" --wait 'list .' | grep -q built.txt
[ "$(wc -l < built.txt)" -eq 1 ]

# Find in the file who approved what.
file=$CASS_HOME/conversations/$chat.jsonl
jq -r 'select(.type == "approval") | "\(.decision) by \(.by)"' "$file" | grep 'approved by .* by cass approve, pid'
jq -r 'select(.type == "tool_result" and .name == "shell") | .content' "$file" | grep -q interrupted
cass stop "$chat"
"""


@pytest.fixture
def _no_server() -> object:
    yield
    subprocess.run([*TMUX.split(), "kill-server"], capture_output=True, check=False)


@pytest.mark.usefixtures("_no_server")
def test_the_demonstration_works_with_shell_one_liners(workspace: Path, tmp_path: Path) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("TMUX")}
    environ |= {"PATH": f"{ROOT / 'bin'}:{environ['PATH']}", "WORK": str(workspace)}
    script = STORY.replace("$TMUX", TMUX)
    done = subprocess.run(
        ["bash", "-c", script], cwd=workspace, env=environ, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "approved by" in done.stdout
