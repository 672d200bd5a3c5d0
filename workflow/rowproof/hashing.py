"""The one content hash."""

import hashlib


def sha256_hex(data: bytes) -> str:
    """SHA-256 of ``data`` as 64 lower-case hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()
