"""Documents that are sent to the service, converted into passages before anything is written."""

import sys
from dataclasses import replace
from importlib.util import find_spec

from engram.context.errors import NotInstalledError
from engram.wings.importing.conversion.converter import Converter
from engram.wings.importing.conversion.documents import Conversion
from engram.wings.importing.conversion.import_limits import ConversionLimits

LIBRARIES = (
    "pypdfium2",
    "bs4",
    "lxml",
    "markdown_it",
    "mdit_py_plugins",
    "charset_normalizer",
    "mammoth",
    "pptx",
    "openpyxl",
)


class DocumentsService:
    """Converts documents, each in a process of its own.

    A process per document costs about a second and keeps what one tenant sends away from the next one's.
    """

    def __init__(self, *, max_bytes: int, timeout_seconds: float) -> None:
        self.limits = replace(ConversionLimits(), file_bytes=max_bytes, seconds=timeout_seconds)

    def convert(self, source: str, data: bytes, *, kind: str, size: int, overlap: int) -> Conversion:
        """Read a document and cut it into passages; no transaction may be open meanwhile.

        ``kind``: the ending that says how it is read.

        Raises:
            UnreadableError: it is of no known kind, locked, damaged, too large, or has no text.
            NotInstalledError: the libraries are not installed.
        """
        self.check()
        with Converter(self.limits) as converter:
            return converter.convert(source, data, kind=kind, size=size, overlap=overlap)

    def check(self) -> None:
        """Go on only if documents can be read here.

        Raises:
            NotInstalledError: the libraries are not installed, or the system is no Unix.
        """
        missing = [name for name in LIBRARIES if find_spec(name) is None]
        if missing or sys.platform == "win32":
            raise NotInstalledError(
                f"This service cannot read documents ({', '.join(missing) or sys.platform}): "
                "install it with pip install 'engram[import]', or send passages."
            )
