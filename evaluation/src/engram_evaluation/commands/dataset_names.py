"""Data sets as the command line names them."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engram_evaluation.dataset import Dataset


def load_dataset(folder: Path) -> "Dataset":
    """The data set in a folder; ``sample``, where there is no such folder, is the one that comes along.

    Raises:
        DatasetError: the folder holds no data set.
    """
    from engram.wings.local import sample
    from engram_evaluation.dataset import load

    return load(Path(sample.__path__[0]) if folder == Path("sample") and not folder.exists() else folder)
