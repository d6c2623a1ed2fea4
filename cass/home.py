"""Where everything of cass lives on disk: the home, and the files of one chat.

Only names are made here. Directories are made by `Home.make` and `Files.make`, private to the user.
"""

import os
from pathlib import Path
from typing import NamedTuple


class Home(NamedTuple):
    """The root, ``~/.cass`` or what ``CASS_HOME`` names."""

    root: Path

    @classmethod
    def find(cls, environ: "os._Environ[str] | dict[str, str]" = os.environ) -> "Home":
        return cls(Path(environ.get("CASS_HOME") or Path("~/.cass").expanduser()).absolute())

    @property
    def conversations(self) -> Path:
        return self.root / "conversations"

    @property
    def config(self) -> Path:
        return self.root / "config.json"

    @property
    def providers(self) -> Path:
        return self.root / "providers.json"

    @property
    def models(self) -> Path:
        return self.root / "models.json"

    @property
    def instructions(self) -> Path:
        return self.root / "global.md"

    @property
    def history(self) -> Path:
        return self.root / "history.jsonl"

    @property
    def trust(self) -> Path:
        return self.root / "trust.json"

    @property
    def mcp(self) -> Path:
        return self.root / "mcp.json"

    @property
    def mcp_tools(self) -> Path:
        """What servers listed when they last ran: a file for each."""
        return self.root / "mcp-tools"

    @property
    def edits(self) -> Path:
        """What write, edit and restores changed: a journal a chat."""
        return self.root / "file-edits"

    @property
    def blobs(self) -> Path:
        """Contents, each named by its SHA-256."""
        return self.root / "blobs"

    @property
    def batches(self) -> Path:
        """Which chat each task of a batch was given, and what came of it."""
        return self.root / "batches"

    def files(self, chat_id: str) -> "Files":
        return Files(self, chat_id)

    def make(self) -> None:
        """Make the root and `conversations`, 0700 from the moment they exist."""
        make_private(self.root)
        make_private(self.conversations)


class Files(NamedTuple):
    """The places of one chat."""

    home: Home
    chat_id: str

    @property
    def chat(self) -> Path:
        return Path(f"{self.home.root}/conversations/{self.chat_id}.jsonl")

    @property
    def edits(self) -> Path:
        return Path(f"{self.home.root}/file-edits/{self.chat_id}.jsonl")

    @property
    def run(self) -> Path:
        return Path(f"{self.home.root}/run/{self.chat_id}")

    @property
    def lock(self) -> Path:
        return Path(f"{self.home.root}/run/{self.chat_id}/lock")

    @property
    def attached(self) -> Path:
        return Path(f"{self.home.root}/run/{self.chat_id}/attached")

    @property
    def bell(self) -> Path:
        return Path(f"{self.home.root}/run/{self.chat_id}/in")

    @property
    def inbox(self) -> Path:
        return Path(f"{self.home.root}/run/{self.chat_id}/inbox")

    @property
    def socket(self) -> Path:
        return Path(f"{self.home.root}/run/{self.chat_id}/s")

    @property
    def live(self) -> Path:
        return self.run / "live.jsonl"

    @property
    def out(self) -> Path:
        return self.run / "out"

    @property
    def draft(self) -> Path:
        return self.run / "draft"

    @property
    def log(self) -> Path:
        return self.run / "log"

    @property
    def mcp(self) -> Path:
        """How the MCP servers of the worker are."""
        return self.run / "mcp.json"

    @property
    def mcp_log(self) -> Path:
        """What they wrote that is no answer."""
        return self.run / "mcp.log"

    def make(self) -> None:
        """Make the directories that a running chat needs."""
        self.home.make()
        for directory in (self.home.root / "run", self.run, self.inbox):
            make_private(directory)


def make_private(directory: Path) -> None:
    """Make `directory` and its missing parents; a directory made here is 0700 whatever the umask."""
    try:
        directory.mkdir(mode=0o700)
    except FileExistsError:
        return
    except FileNotFoundError:
        make_private(directory.parent)
        directory.mkdir(mode=0o700, exist_ok=True)


def create_private(path: Path, flags: int = 0) -> int:
    """Open `path` for writing, making it 0600 if it is missing; return the descriptor. Adds O_CLOEXEC."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | flags, 0o600)
