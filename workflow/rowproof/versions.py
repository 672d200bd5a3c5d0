"""Which versions of distributions are installed."""

from importlib.metadata import PackageNotFoundError, version


def installed(name: str) -> str:
    """Installed version of a distribution, or ``absent``.

    Without the local part, by which one release is told in several builds (``+cpu``).
    """
    try:
        return version(name).partition("+")[0]
    except PackageNotFoundError:
        return "absent"
