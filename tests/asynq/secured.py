"""Certificates, users and a server program, for tests of Redis over TLS and with passwords."""

import shutil
from pathlib import Path

CERTIFICATES = Path(__file__).parent / "certificates"
TRUST = f"ssl_ca_certs={CERTIFICATES}/authority.pem"
SHOWN = f"ssl_certfile={CERTIFICATES}/client.pem&ssl_keyfile={CERTIFICATES}/client.key"


def program_with_tls() -> str | None:
    """Return the installed server program that speaks TLS; the embedded one does not."""
    program = shutil.which("redis-server")
    return program if program is not None and b"libssl.so" in Path(program).read_bytes() else None


def tls_settings(port: int) -> dict[str, str]:
    """Return the settings of a server, or Sentinel, that speaks nothing but TLS, to its replicas too."""
    return {
        "port": "0",
        "tls-port": str(port),
        "tls-cert-file": str(CERTIFICATES / "server.pem"),
        "tls-key-file": str(CERTIFICATES / "server.key"),
        "tls-ca-cert-file": str(CERTIFICATES / "authority.pem"),
        "tls-replication": "yes",
    }
