"""Bounds on one document: a file is untrusted input, and a small one can unpack to any size."""

import math
import zipfile
from dataclasses import dataclass
from io import BytesIO

from engram.wings.importing.conversion.documents import UnreadableError

MIB = 1024 * 1024
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""What files of Microsoft's compound format begin with."""


@dataclass(frozen=True)
class ConversionLimits:
    """Limits of converting one document.

    Attributes:
        file_bytes: size of the file.
        unpacked_bytes: size of all members of a zip-based file (DOCX, PPTX, XLSX) together.
        pages: pages of a PDF, slides of a presentation.
        cells: cells of a table with a value, over all sheets; values of a JSON file.
        characters: text of all passages together.
        seconds: wall-clock time of the conversion.
        memory_bytes: address space of the process that converts.
        ends: when the process that converts is ended, by ``time.monotonic``; ``Converter`` sets it.
        recognise_until: when OCR stops, by the same clock; ``formats.convert`` sets it.
    """

    file_bytes: int = 32 * MIB
    unpacked_bytes: int = 256 * MIB
    pages: int = 5_000
    cells: int = 1_000_000
    characters: int = 50_000_000
    seconds: float = 60.0
    memory_bytes: int = 3 * 1024 * MIB
    ends: float = math.inf
    recognise_until: float = math.inf


# A person imports files of their own: larger ones, and they can wait longer.
PATIENT = ConversionLimits(file_bytes=512 * MIB, unpacked_bytes=1024 * MIB, cells=5_000_000, seconds=300.0)
EMPTY_ROWS = 2_000_000
"""Rows of a sheet that are read; most of a hostile sheet is empty."""
ZIP_MEMBERS = 20_000
"""Members of a zip-based file."""


def check_zip(source: str, data: bytes, limits: ConversionLimits) -> None:
    """Refuse a zip-based file before anything unpacks it.

    The sizes in the zip's directory are its own claim. ``zipfile`` stops reading a member at the size that the
    directory gives, so a false claim makes a damaged member and not a large one.

    Raises:
        UnreadableError: it is no zip file, has encrypted or too many members, or unpacks to too much.
    """
    if data.startswith(OLE):  # Office's encryption, or its old formats
        raise UnreadableError(f"{source} needs a password, or is in an Office format from before 2007.")
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
        raise UnreadableError(f"{source} is not what its name says: it is no zip file.") from error
    if any(member.flag_bits & 1 for member in members):
        raise UnreadableError(f"{source} needs a password.")
    if len(members) > ZIP_MEMBERS:
        raise UnreadableError(f"{source} has more than {ZIP_MEMBERS:,} parts.")
    if sum(member.file_size for member in members) > limits.unpacked_bytes:
        raise UnreadableError(f"{source} unpacks to more than {limits.unpacked_bytes // MIB} MiB.")
