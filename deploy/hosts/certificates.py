"""Make the TLS files of one Dask cluster: an authority and one certificate of it.

    python deploy/hosts/certificates.py certificates host-a host-b 10.0.0.7

writes `ca.pem`, `cert.pem` and `key.pem` into the folder `certificates`. Whoever has
`key.pem` can run code on the cluster: copy it to its hosts and to nobody else. The
authority's own key is thrown away, so nothing else can ever be signed by it.
"""

import argparse
import datetime as dt
import ipaddress
import os
import sys
from pathlib import Path

try:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
except ModuleNotFoundError:
    sys.exit("error: this needs one more package; pip install cryptography")


def main() -> None:
    """Write the three files."""
    parser = argparse.ArgumentParser(description="Make the TLS files of a cluster.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("hosts", nargs="+", help="names and addresses of the hosts")
    parser.add_argument("--days", type=int, default=365)
    given = parser.parse_args()

    authority_key = ec.generate_private_key(ec.SECP256R1())
    key = ec.generate_private_key(ec.SECP256R1())
    authority = _certificate("dsel authority", authority_key, given.days)
    leaf = _certificate("dsel cluster", key, given.days, given.hosts, authority_key)

    given.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _write(given.folder / "ca.pem", authority.public_bytes(serialization.Encoding.PEM))
    _write(given.folder / "cert.pem", leaf.public_bytes(serialization.Encoding.PEM))
    _write(
        given.folder / "key.pem",
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )


def _certificate(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    days: int,
    hosts: list[str] | None = None,
    signer: ec.EllipticCurvePrivateKey | None = None,
) -> x509.Certificate:
    """Certificate of a cluster's hosts, or without hosts one of the authority."""
    now = dt.datetime.now(dt.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(_name(name))
        .issuer_name(_name("dsel authority"))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # Clocks of hosts differ; a certificate from "the future" would be refused.
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=hosts is None, path_length=None), True)
    )
    if hosts is not None:
        names = x509.SubjectAlternativeName([_host(host) for host in hosts])
        builder = builder.add_extension(names, critical=False)
    return builder.sign(signer or key, hashes.SHA256())


def _name(common_name: str) -> x509.Name:
    attribute = x509.NameAttribute(x509.NameOID.COMMON_NAME, common_name)
    return x509.Name([attribute])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _write(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read."""
    path.unlink(missing_ok=True)
    with os.fdopen(
        os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb"
    ) as f:
        f.write(content)


if __name__ == "__main__":
    main()
