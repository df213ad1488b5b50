"""Old Office files, which LibreOffice turns into those of today where it is installed.

It runs beside the process that converts, because it writes files: in a folder of its own with a profile of its own,
without macros, without links to other files, and with bounds on time, memory and size.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from engram.wings.importing.conversion.documents import UnreadableError
from engram.wings.importing.conversion.import_limits import OLE, ConversionLimits

PRESENT_KINDS = {".doc": ".docx", ".xls": ".xlsx", ".ppt": ".pptx"}
"""Kinds of old files, and those that LibreOffice makes of them."""
_POLL_SECONDS = 0.1
_SETTING = (
    '<item oor:path="/org.openoffice.Office.{}"><prop oor:name="{}" oor:op="fuse"><value>{}</value></prop></item>'
)
_SETTINGS = (
    ("Common/Security/Scripting", "DisableMacrosExecution", "true"),
    ("Common/Security/Scripting", "MacroSecurityLevel", "3"),
    ("Common/Security/Scripting", "BlockUntrustedRefererLinks", "true"),
    ("Common/Security/Scripting", "DisableActiveContent", "true"),
    ("Writer/Content/Update", "Link", "0"),  # never
    ("Calc/Content/Update", "Link", "1"),  # never
)
_PROFILE = (
    '<?xml version="1.0" encoding="UTF-8"?><oor:items xmlns:oor="http://openoffice.org/2001/registry">'
    + "".join(_SETTING.format(*setting) for setting in _SETTINGS)
    + "</oor:items>"
)
_BOUNDS = 'ulimit -v "$1" && ulimit -f "$2" && shift 2 && exec "$@"'


def find_program() -> str | None:
    """Return the path of LibreOffice; None where it is not installed."""
    return shutil.which("soffice") or shutil.which("libreoffice")


def modernise(
    source: str,
    data: bytes,
    kind: str,
    limits: ConversionLimits,
    is_abandoned: Callable[[], bool] = lambda: False,
) -> tuple[str, bytes]:
    """Return the kind and the bytes of the file that LibreOffice makes of an old one.

    A file of today, or of rich text, with the name of an old one stays as it is, and so does an empty one.

    Args:
        is_abandoned: polled while LibreOffice runs; once true, it ends and the file is unreadable.

    Raises:
        UnreadableError: LibreOffice is not installed, cannot read it, or takes too long.
    """
    if data.startswith(b"PK") or not data.strip():
        return PRESENT_KINDS[kind], data
    if data.startswith(b"{\\rtf"):
        return ".rtf", data
    if not data.startswith(OLE):
        raise UnreadableError(f"{source} is not what its name says: Office did not save it.")
    program = find_program()
    if program is None:
        raise UnreadableError(f"{source} is read by LibreOffice, which is not installed: no soffice on the PATH.")
    with TemporaryDirectory(prefix="engram-office-") as name:
        folder = Path(name)
        (folder / "profile/user").mkdir(parents=True)
        (folder / "profile/user/registrymodifications.xcu").write_text(_PROFILE, encoding="utf-8")
        (folder / f"file{kind}").write_bytes(data)
        converted = folder / f"made/file{PRESENT_KINDS[kind]}"
        command = [
            program,
            f"-env:UserInstallation={(folder / 'profile').as_uri()}",
            *("--headless", "--norestore", "--nolockcheck", "--convert-to", converted.suffix.lstrip(".")),
            *("--outdir", str(converted.parent), str(folder / f"file{kind}")),
        ]
        _run(source, command, folder, limits, is_abandoned)
        if not converted.exists():
            raise UnreadableError(f"{source} cannot be read by LibreOffice: it may be damaged or need a password.")
        if converted.stat().st_size > limits.unpacked_bytes:
            raise UnreadableError(f"{source} is too large as a file of {converted.suffix.lstrip('.').upper()}.")
        return converted.suffix, converted.read_bytes()


def _run(
    source: str, command: list[str], folder: Path, limits: ConversionLimits, is_abandoned: Callable[[], bool]
) -> None:
    bounds = [str(limits.memory_bytes // 1024), str(limits.unpacked_bytes // 512)]
    process = subprocess.Popen(
        ["/bin/sh", "-c", _BOUNDS, "sh", *bounds, *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env={"PATH": os.environ.get("PATH", os.defpath), "HOME": str(folder), "TMPDIR": str(folder)},
        start_new_session=True,
    )
    ends = time.monotonic() + limits.seconds
    try:
        while process.poll() is None:
            if time.monotonic() >= ends:
                raise UnreadableError(f"{source} took longer than {limits.seconds:g} seconds to read.")
            if _measure(folder) > limits.file_bytes + limits.unpacked_bytes:
                raise UnreadableError(f"{source} makes LibreOffice write too much.")
            if is_abandoned():
                raise UnreadableError(f"{source} was abandoned.")
            time.sleep(_POLL_SECONDS)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # its helpers too
        process.wait()


def _measure(folder: Path) -> int:
    """Bytes of the files in a folder; they may come and go meanwhile."""
    size = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                size += os.lstat(os.path.join(place, name)).st_size
    return size
