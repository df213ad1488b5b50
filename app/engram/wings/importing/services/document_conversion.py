"""Documents that are sent to the service, converted into passages before anything is written."""

import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec

from engram.context.errors import AbandonedError, NotInstalledError
from engram.wings.importing.conversion.converter import Converter
from engram.wings.importing.conversion.documents import Conversion, UnreadableError
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


class DocumentConversion:
    """Converts documents, each in a process of its own.

    A process per document costs some milliseconds and keeps what one tenant sends away from the next one's.
    """

    def __init__(self, *, max_bytes: int, timeout_seconds: float) -> None:
        self.limits = replace(ConversionLimits(), file_bytes=max_bytes, seconds=timeout_seconds)

    def convert(
        self,
        source: str,
        data: bytes,
        *,
        kind: str,
        size: int,
        overlap: int,
        client_left: Callable[[], bool] = lambda: False,
    ) -> Conversion:
        """Read a document and cut it into passages; no transaction may be open meanwhile.

        Args:
            kind: the ending that says how it is read.
            client_left: polled; once true, the conversion is given up.

        Raises:
            AbandonedError: the client left.
            UnreadableError: it is of no known kind, locked, damaged, too large, or has no text.
            NotInstalledError: the libraries are not installed.
        """
        self.check()
        try:
            with Converter(self.limits, client_left) as converter:
                return converter.convert(source, data, kind=kind, size=size, overlap=overlap)
        except UnreadableError as error:
            if client_left():
                raise AbandonedError("The client closed its connection before the document was read.") from error
            raise

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
