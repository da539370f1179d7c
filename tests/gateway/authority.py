"""A certificate authority of the tests' own, as good or as bad as they need it."""

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

NOW = datetime.now(UTC)
DAY = timedelta(days=1)


@dataclass(frozen=True)
class Leaf:
    """What a server's certificate says; the good one is for 127.0.0.1, from yesterday until tomorrow."""

    host: str = "127.0.0.1"
    begins: datetime = NOW - DAY
    ends: datetime = NOW + DAY


class Authority:
    """An authority signs certificates; its own lies in ``path`` for those who trust it."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        self.path = folder / f"{name}.pem"
        own = _builder(self._name, self._name, self._key.public_key(), Leaf())
        own = own.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        own = own.add_extension(_USES, critical=True)
        own = own.add_extension(
            x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False
        )
        self.path.write_bytes(_pem(own.sign(self._key, hashes.SHA256())))

    def server(self, leaf: Leaf, *, highest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> ssl.SSLContext:
        """Return a server's context with a certificate signed by this authority."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.IPAddress(ip_address(leaf.host)) if leaf.host[0].isdigit() else x509.DNSName(leaf.host)
        builder = _builder(_name(leaf.host), self._name, key.public_key(), leaf)
        builder = builder.add_extension(x509.SubjectAlternativeName([name]), critical=False)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(issuer, critical=False)
        chain = self._folder / f"{id(builder):x}.pem"
        chain.write_bytes(_key_pem(key) + _pem(builder.sign(self._key, hashes.SHA256())))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain)
        if highest < ssl.TLSVersion.TLSv1_2:
            context.set_ciphers("ALL:@SECLEVEL=0")  # else OpenSSL itself refuses to speak it
            context.minimum_version = highest
        context.maximum_version = highest
        return context


_USES = x509.KeyUsage(
    digital_signature=True,
    key_cert_sign=True,
    crl_sign=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    encipher_only=False,
    decipher_only=False,
)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, leaf: Leaf
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(leaf.begins)
        .not_valid_after(leaf.ends)
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
