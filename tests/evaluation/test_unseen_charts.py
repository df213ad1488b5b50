"""The picture of protocol ``unseen``: what its lines are, and that it needs nothing else."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from engram_evaluation.report_files import ReportFileError, read
from engram_evaluation.svg import COLOURS, Lines, draw_picture, ticks
from engram_evaluation.unseen_charts import draw_unseen, plot_gains
from tests.evaluation.test_report_page import add_changes, change, cold, row, write
from tests.support.command import Cli


def test_lines_run_from_edge_to_edge_and_upwards() -> None:
    drawn = draw_picture([Lines("t", "x", "y", {"up": [(0, 0.2), (2, 0.4), (4, 0.6)]})])
    places = [(float(x), float(y)) for x, y in re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', drawn)]
    (x0, y0), (x1, y1), (x2, y2) = places
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.2)
    assert y0 > y1 > y2
    many = {str(at): [(0.0, 0.5), (1.0, at / 10)] for at in range(COLOURS + 1)}
    assert draw_picture([Lines("t", "x", "y", many)]).count(" dashed") == 1


@pytest.mark.parametrize("ends", [(0.0, 1.0), (0.731, 0.748), (0.5, 0.5), (0.0, 0.0), (-0.2, 0.1), (0.9, 1.0)])
def test_ticks_enclose_what_is_drawn(ends: tuple[float, float]) -> None:
    found = ticks(*ends)
    assert found[0] <= ends[0] <= ends[1] <= found[-1]
    assert 2 <= len(found) <= 8
    assert found == sorted(set(found))


def write_unseen(folder: Path) -> Path:
    """A report of ``unseen``: dense gains .1 of others' recall after 25 verdicts, and twice that after 50."""
    path = write(folder, "timeqa", "unseen", [row("dense", "others", turn, 0.5) for turn in (0, 25, 50)])
    changes = [
        change("others", "recall@5", 0.5, 0.5 + turn / 250) | {"arm": arm, "turn": turn}
        for turn in (25, 50)
        for arm in ("dense", "dense, gate off")
    ]
    add_changes(path, changes)
    return path


def test_gains_begin_at_no_verdict_and_have_intervals(tmp_path: Path) -> None:
    write_unseen(tmp_path)
    (gains,) = plot_gains(*read([tmp_path]).retrieval)
    assert gains.series == {"dense": [(0, 0.0), (25, pytest.approx(0.1)), (50, pytest.approx(0.2))]}
    assert gains.intervals == {"dense": [(0.0, 0.0), (-0.1, 0.2), (-0.1, 0.2)]}
    assert draw_picture([gains]).count('class="line interval') == 3


def test_a_picture_is_a_file_that_needs_nothing_else(tmp_path: Path, cli: Cli) -> None:
    write_unseen(tmp_path / "reports")
    picture = tmp_path / "gains.svg"
    assert cli("report", str(tmp_path / "reports"), "--picture", str(picture)).returncode == 0

    drawn = ElementTree.fromstring(picture.read_text(encoding="utf-8"))
    words = {element.text for element in drawn.iter() if element.tag.endswith("}text")}
    assert {"timeqa, others: gain in R@5", "dense", "verdicts"} <= words
    assert drawn.attrib["viewBox"] == "0 0 480 292"


def test_without_a_run_of_unseen_there_is_no_picture(tmp_path: Path) -> None:
    write(tmp_path, "2wiki", "cold", cold(0.5))
    with pytest.raises(ReportFileError, match="No report is of --protocol unseen"):
        draw_unseen([tmp_path])
