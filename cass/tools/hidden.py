"""Hidden: what a sandboxed command does not see, of what there is on this machine.

Credentials by a table of the places where programs keep them, sockets by the kernel's own list, each by every name it
has: links are resolved, and a directory that is mounted in two places is hidden in both.
"""

import contextlib
import functools
import os
import pwd
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

IN_HOME = (
    # keys and agents
    *(".ssh", ".gnupg", ".pki", ".age", ".config/age", ".config/sops", ".vault-token", ".dbus", ".Xauthority"),
    *(".ICEauthority", ".config/pulse/cookie"),
    # what keeps passwords
    *(".password-store", ".local/share/keyrings", ".local/share/kwalletd", ".local/share/gnome-keyring", ".gnome2"),
    *(".1password", ".config/1Password", ".config/op", ".config/keepassxc", ".cache/keepassxc", ".config/Bitwarden"),
    *(".config/Bitwarden CLI", ".lastpass", ".local/share/lpass", ".authinfo", ".authinfo.gpg", ".netrc", "_netrc"),
    # clouds and clusters
    *(".aws", ".azure", ".config/gcloud", ".boto", ".gsutil", ".oci", ".aliyun", ".bluemix", ".config/doctl"),
    *(".config/hcloud", ".config/scw", ".config/linode-cli", ".fly", ".config/flyctl", ".vercel", ".config/netlify"),
    *(".local/share/com.vercel.cli", ".wrangler", ".config/.wrangler", ".config/heroku", ".config/configstore"),
    *(".kube", ".config/k9s", ".docker/config.json", ".docker/run", ".docker/contexts", ".config/containers/auth.json"),
    *(".config/helm", ".terraform.d/credentials.tfrc.json", ".terraformrc", ".pulumi/credentials.json"),
    *(".config/rclone", ".s3cfg", ".mc", ".ngrok2", ".config/ngrok", ".cloudflared", ".config/tailscale"),
    # forges and package registries
    *(".git-credentials", ".config/git/credentials", ".config/gh", ".config/hub", ".config/glab-cli", ".config/tea"),
    *(".npmrc", ".yarnrc", ".pypirc", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials"),
    *(".composer/auth.json", ".config/composer/auth.json", ".m2/settings.xml", ".m2/settings-security.xml"),
    *(".gradle/gradle.properties", ".nuget/NuGet/NuGet.Config", ".config/NuGet/NuGet.Config", ".condarc"),
    *(".config/uv/credentials", ".local/share/uv/credentials", ".config/pypoetry/auth.toml", ".hex/hex.config"),
    # data bases, mail
    *(".pgpass", ".my.cnf", ".mylogin.cnf", ".config/mongodb", ".dbshell", ".rediscli_auth", ".msmtprc", ".mbsyncrc"),
    *(".config/msmtp", ".config/mbsync", ".fetchmailrc", ".offlineimaprc", ".muttrc", ".mutt", ".config/mutt"),
    *(".config/neomutt", ".thunderbird", ".config/evolution", ".local/share/evolution", ".smbcredentials"),
    # models and agents
    *(".huggingface", ".cache/huggingface/token", ".cache/huggingface/stored_tokens", ".kaggle", ".config/openai"),
    *(".config/anthropic", ".config/io.datasette.llm", ".config/github-copilot", ".claude", ".claude.json", ".codex"),
    *(".gemini", ".config/opencode", ".local/share/opencode", ".local/share/goose", ".config/goose", ".aider.conf.yml"),
    *(".pi", ".ollama/id_ed25519", ".continue", ".cursor", ".config/Cursor", ".config/Code", ".config/VSCodium"),
    *(".config/zed", ".local/share/crush", ".config/crush"),
    # browsers and messengers
    *(".mozilla", ".config/google-chrome", ".config/google-chrome-beta", ".config/chromium", ".config/BraveSoftware"),
    *(".config/microsoft-edge", ".config/vivaldi", ".config/opera", ".librewolf", ".zen", ".config/qutebrowser"),
    *(".local/share/qutebrowser", ".var/app", "snap/firefox", "snap/chromium", ".config/Signal", ".config/Slack"),
    *(".config/discord", ".config/Element", ".local/share/TelegramDesktop", ".purple", ".irssi", ".weechat"),
    *(".config/weechat", ".config/irssi", ".config/remmina", ".local/share/remmina", ".config/filezilla"),
    # money
    *(".bitcoin", ".ethereum", ".electrum", ".config/solana", ".config/Exodus", ".monero"),
    # what was typed once
    *(".bash_history", ".zsh_history", ".histfile", ".local/share/fish/fish_history", ".local/share/atuin"),
    *(
        ".python_history",
        ".node_repl_history",
        ".psql_history",
        ".mysql_history",
        ".sqlite_history",
        ".rediscli_history",
    ),
    *(".irb_history", ".viminfo", ".local/state/nvim/shada", ".lesshst"),
)
"""Below the home of the person: credentials, and what other agents keep."""

OF_SYSTEM = (
    *("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/krb5.keytab", "/etc/ssl/private"),
    *("/etc/ssh/ssh_host_rsa_key", "/etc/ssh/ssh_host_ecdsa_key", "/etc/ssh/ssh_host_ed25519_key"),
    *("/etc/NetworkManager/system-connections", "/etc/wireguard", "/etc/openvpn", "/etc/letsencrypt"),
    *("/etc/kubernetes", "/etc/rancher", "/var/lib/kubelet", "/etc/docker/key.json", "/var/lib/docker"),
)
"""What only root can read, where the person is root."""

IN_TMP = ("tmux-*", "screens", ".X11-unix", ".ICE-unix", "ssh-*", "dbus-*", "zellij-*", "emacs*")
"""Where sockets lie in ``/tmp``; of use only where that is the workspace, for else the command has its own."""

BY_VARIABLE = (
    *("SSH_AUTH_SOCK", "XAUTHORITY", "ICEAUTHORITY", "KUBECONFIG", "NETRC", "DOCKER_CONFIG", "GNUPGHOME", "PGPASSFILE"),
    *("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AZURE_CONFIG_DIR"),
    *("CLOUDSDK_CONFIG", "GOOGLE_APPLICATION_CREDENTIALS", "BOTO_CONFIG", "GH_CONFIG_DIR", "GLAB_CONFIG_DIR"),
    *("NPM_CONFIG_USERCONFIG", "PASSWORD_STORE_DIR", "SOPS_AGE_KEY_FILE", "REGISTRY_AUTH_FILE", "HISTFILE"),
    *("XDG_RUNTIME_DIR", "RCLONE_CONFIG", "CARGO_REGISTRIES_CRATES_IO_TOKEN_FILE", "HF_TOKEN_PATH"),
)
"""Variables that name such a place; several paths stand between colons."""


class Mount(NamedTuple):
    """One line of mountinfo: the directory `root` of a file system, seen at `point`."""

    device: str
    root: str
    point: str


# ---- of this machine ------------------------------------------------------------------------------------------------


def credentials(environ: Mapping[str, str]) -> set[str]:
    """Paths of credentials that are there and can be read, every link in them resolved."""
    here = homes(environ)
    found = {*_usual(here), *(path for path in _named(environ) if not any(is_below(home, path) for home in here))}
    # Where it cannot be read it need not be hidden, and might be in no state to be mounted over.
    readable = (path for path in found if os.access(path, os.R_OK))
    return {path for path in map(os.path.realpath, readable) if path != "/"}


def kept_in(root: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Places of credentials below the workspace `root`, there or not; none of which it is in itself."""
    found = {os.path.realpath(path) for path in (*_usual(homes(environ)), *_named(environ))}
    return tuple(sorted(path for path in found if path != root and is_below(path, root)))


@functools.cache
def _usual(homes: frozenset[str]) -> frozenset[str]:
    """Where credentials would be, whether they are there or not."""
    return frozenset(os.path.join(home, name) for home in homes for name in IN_HOME).union(OF_SYSTEM)


def _named(environ: Mapping[str, str]) -> Iterator[str]:
    """What the variables say; a relative path has no place that is known here."""
    for name in BY_VARIABLE:
        yield from (os.path.normpath(path) for path in environ.get(name, "").split(":") if path.startswith("/"))
    if directory := environ.get("TMUX_TMPDIR"):
        yield os.path.join(directory, f"tmux-{os.getuid()}")


def homes(environ: Mapping[str, str]) -> frozenset[str]:
    """The home of the person: what HOME says, and what the system knows."""
    found = {environ.get("HOME", "")}
    with contextlib.suppress(KeyError):  # a container may run as a user that nobody has named
        found.add(pwd.getpwuid(os.getuid()).pw_dir)
    return frozenset(home for home in found if os.path.isabs(home) and os.path.realpath(home) != "/")


def sockets(listing: bytes) -> set[str]:
    """The paths in what ``/proc/net/unix`` says: of every socket with a name that is bound, whoever listens.

    A read-only mount does not keep anyone from connecting. Source: proc_net_unix(5).
    """
    found: set[str] = set()
    for line in listing.splitlines()[1:]:
        fields = line.split(b" ", 7)
        rest = line.partition(b" /")[2]
        if rest and len(fields) >= 7:
            found.add(os.fsdecode(b"/" + rest))
    return found


def bound_sockets() -> set[str]:
    """Those that can be found now, resolved."""
    try:
        listing = Path("/proc/net/unix").read_bytes()
    except OSError:
        return set()
    return {os.path.realpath(path) for path in sockets(listing) if os.path.exists(path)}


# ---- the same by other names ----------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=1)
def mounts(mountinfo: bytes) -> tuple[Mount, ...]:
    """What ``/proc/self/mountinfo`` says, in its order. Source: proc_pid_mountinfo(5)."""
    found = []
    for line in mountinfo.splitlines():
        fields = line.split(b" ")
        if len(fields) > 4:
            found.append(Mount(os.fsdecode(fields[2]), _plain(fields[3]), _plain(fields[4])))
    return tuple(found)


def _plain(field: bytes) -> str:
    """A path as it is, where the kernel writes a blank as ``\\040``."""
    return os.fsdecode(re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8) & 255]), field))


def aliases(path: str, found: Sequence[Mount]) -> Iterator[str]:
    """Where else the resolved `path`, or something below it, is mounted."""
    own = _owner(path, found)
    if own is None:
        return
    inner = _join(own.root, path.removeprefix(own.point.rstrip("/")))
    for mount in found:
        if mount.device != own.device or mount is own:
            continue
        if is_below(inner, mount.root):
            yield _join(mount.point, inner.removeprefix(mount.root.rstrip("/")))
        elif is_below(mount.root, inner):
            yield mount.point


def _owner(path: str, found: Iterable[Mount]) -> Mount | None:
    """The mount that `path` is on: the deepest, of those at one place the last."""
    own = None
    for mount in found:
        if is_below(path, mount.point) and (own is None or len(mount.point) >= len(own.point)):
            own = mount
    return own


def _join(top: str, rest: str) -> str:
    return f"{top.rstrip('/')}{rest}" or "/"


def is_below(path: str, top: str) -> bool:
    """Whether `path` is `top` or in it; both resolved."""
    return path == top or path.startswith(top.rstrip("/") + "/")
