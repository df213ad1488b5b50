"""Files and folders of the embedded servers: created with exact permissions, never changed afterwards."""

import os
import stat
from importlib.util import find_spec
from pathlib import Path

from engram.context.errors import ConfigurationError
from engram.wings.local.servers.child_process import User


def look_for_bundled(package: str, *parts: str) -> Path | None:
    """Path inside an installed package, found without importing it: importing starts or patches things.

    None if the package is not installed or has no such file on this platform.
    """
    spec = find_spec(package)
    path = Path(spec.origin).parent.joinpath(*parts) if spec and spec.origin else None
    return path if path is not None and path.exists() else None


def find_bundled(package: str, *parts: str) -> Path:
    """Find a bundled file like ``look_for_bundled``.

    Raises:
        ConfigurationError: there is no such file.
    """
    path = look_for_bundled(package, *parts)
    if path is None:
        raise ConfigurationError(
            f"The package {package} has no {parts[-1]} for this platform; "
            "set DATABASE_URL and REDIS_URL to servers of your own."
        )
    return path


def create_directory(path: Path, *, mode: int, owner: User | None = None) -> bool:
    """Create ``path`` with exactly this mode and owner; one that exists is left as it is (returns False)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        return False
    path.chmod(mode)  # before the owner: root without CAP_FOWNER may only change what it owns
    if owner is not None:
        os.chown(path, *owner, follow_symlinks=False)
    return True


def create_socket_directory(path: Path, owner: User | None) -> None:
    """Create the folder of the unix socket, closed to everybody but the server and this process.

    Raises ConfigurationError if one exists that somebody else could use.
    """
    uid = os.geteuid() if owner is None else owner.uid
    shared = None if owner is None else User(owner.uid, os.getegid())
    create_directory(path, mode=0o700 if owner is None else 0o710, owner=shared)
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != uid or status.st_mode & 0o067:
        raise ConfigurationError(f"{path} is not a private directory of user {uid}; remove it.")


def open_private(path: Path, flags: int) -> int:
    """Open or create a file of mode 0600 that belongs to its folder's owner; symbolic links are refused."""
    flags |= os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        file = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return os.open(path, flags)
    owner = path.parent.stat()
    if os.geteuid() == 0 and owner.st_uid != 0:
        os.fchown(file, owner.st_uid, owner.st_gid)
    return file
