"""Objects that only the user who wrote them opens again: pickled models of a run.

Unpickling runs code, and a store may come from anywhere. So each object begins with a
signature, made with a secret that lies in the user's cache folder and in no store. An
object that was signed with another secret, or changed since, is one that is not there.
"""

import hmac
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Final

from zarr.abc.store import Store
from zarr.core.sync import sync

from dsel.results.records import read_object, write_object

FOLDER: Final = "model"
SIZE: Final = 32
"""Bytes of the secret, and of a signature."""


def write_signed(store: Store, name: str, payload: bytes) -> bool:
    """Write an object; return whether it is there.

    It is not where this user can keep no secret, or the store takes no more.
    """
    secret = _secret(make=True)
    if secret is None:
        return False
    with suppress(OSError):
        write_object(store, _key(name), _signature(secret, name, payload) + payload)
        return True
    return False


def read_signed(store: Store, name: str) -> bytes | None:
    """Return what this user wrote under a name; None where there is no such object."""
    secret, found = _secret(make=False), sync(read_object(store, _key(name)))
    if secret is None or found is None:
        return None
    signature, payload = found[:SIZE], found[SIZE:]
    is_ours = hmac.compare_digest(signature, _signature(secret, name, payload))
    return payload if is_ours else None


def remove_signed(store: Store, name: str) -> None:
    """Remove an object; nothing happens where it is not there."""
    with suppress(OSError):
        sync(store.delete(_key(name)))


def _key(name: str) -> str:
    return f"{FOLDER}/{name}.signed"


def _signature(secret: bytes, name: str, payload: bytes) -> bytes:
    made = hmac.new(secret, f"{name}\n".encode(), "sha256")
    made.update(payload)
    return made.digest()


def _secret(*, make: bool) -> bytes | None:
    """Return the user's secret, made where it is missing and asked for; else None.

    One that others may read, or that others own, is none.
    """
    if os.name != "posix":
        return None
    root = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    path = Path(root).expanduser() / "dsel" / "secret"
    with suppress(OSError, RuntimeError):  # RuntimeError: nobody knows the home
        if make and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_name(f"secret.{secrets.token_hex(8)}")
            part.touch(mode=0o600)
            part.write_bytes(secrets.token_bytes(SIZE))
            with suppress(FileExistsError):
                os.link(part, path)  # whole, and never in the place of another one
            part.unlink()
        about = path.stat()
        if about.st_uid == os.getuid() and not about.st_mode & 0o077:
            found = path.read_bytes()
            return found if len(found) == SIZE else None
    return None
