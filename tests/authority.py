"""An authority that nobody knows, and a network without what the environment says of it."""

import os
import subprocess
from pathlib import Path

import pytest


@pytest.fixture
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Proxies and authorities of whoever runs the tests are none of theirs."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with ``ca.pem`` of an authority nobody knows, and ``server.pem``, which it signed for localhost."""
    place = tmp_path_factory.mktemp("authority")

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=place, check=True, capture_output=True)

    new = ("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    ours = ("-addext", "keyUsage=critical,keyCertSign", "-subj", "/CN=Our own")
    openssl(*new, "-x509", "-days", "2", "-keyout", "ca.key", "-out", "ca.pem", *ours)
    openssl(*new, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=localhost")
    (place / "names").write_text("subjectAltName=DNS:localhost\n")
    signed = ("-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2")
    openssl("x509", *signed, "-extfile", "names", "-out", "server.crt")
    (place / "server.pem").write_text((place / "server.crt").read_text() + (place / "server.key").read_text())
    return place
