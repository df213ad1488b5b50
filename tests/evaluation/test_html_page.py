"""The HTML page: complete on its own, escaped, well-formed, a chart for what is measured; charts by hand."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from engram_evaluation import adapt_table, ratings_table
from engram_evaluation.html_page import html
from engram_evaluation.learning_variations import HUMAN
from engram_evaluation.report_files import ReportFileError, read
from engram_evaluation.report_page import gather
from engram_evaluation.report_sections import sections
from engram_evaluation.section_charts import charts, draw_unseen
from engram_evaluation.svg import COLOURS, Bars, Lines, figure, ticks
from tests.evaluation.test_report_page import add_changes, change, cold, noise_rows, row, write, write_tables
from tests.support.command import UNREACHABLE_URL, Cli

SVG = re.compile(r"<svg.*?</svg>", re.DOTALL)
VOID = {"meta"}


class Outline(HTMLParser):
    """Checks that every element is closed in its place, and keeps names, attributes and text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += attrs
        if tag not in VOID and not self.get_starttag_text().endswith("/>"):  # type: ignore[union-attr]
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += attrs


def build_rows(arms: list[str], groups: list[str], turns: int) -> list[dict[str, Any]]:
    return [
        row(arm, group, turn, 0.4 + 0.1 * turn + 0.01 * at)
        for group in groups
        for at, arm in enumerate(arms)
        for turn in range(turns + 1)
    ]


def list_charts(folder: Path) -> list[Lines | Bars]:
    return [chart for section in sections(read([folder]).retrieval) for chart in charts(section)]


def test_the_page_needs_nothing_from_anywhere_and_is_well_formed(tmp_path: Path) -> None:
    write(tmp_path, "2wiki", "cold", cold(0.5))
    write(tmp_path, "hotpotqa", "cold", cold(0.25))
    write(tmp_path, "2wiki", "similar", build_rows(["default"], ["judged questions", "others"], 3), " --turns 3")
    write(tmp_path, "2wiki", "noise", noise_rows())
    page = html([tmp_path])
    outline = Outline(page)
    loading = {"src", "href", "srcset", "data", "action", "xlink:href"}
    assert {value for name, value in outline.attributes if name in loading} == {"#cold", "#similar", "#noise"}
    assert not {"script", "link", "img", "iframe", "object"} & set(outline.names)
    assert not re.search(r"url\(|@import|https?:", page)
    assert "prefers-color-scheme:dark" in page
    assert outline.names.count("figure") == outline.names.count("svg") == len(list_charts(tmp_path)) == 3
    assert '<th scope="row">dense</th>' in page
    for svg in SVG.findall(page):
        assert ElementTree.fromstring(svg).get("aria-label")
    assert page == html([tmp_path])


def test_the_tables_are_those_of_the_markdown_page(tmp_path: Path) -> None:
    write(tmp_path, "2wiki", "cold", cold(0.5))
    write(tmp_path, "musique", "similar", build_rows(["default"], ["judged questions"], 2))
    write_tables(tmp_path, "absent", "2wiki")
    cells = {
        cell.strip()
        for line in gather([tmp_path]).splitlines()
        if line.startswith("| ")
        for cell in line.split("|")
    }
    shown = set(re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", html([tmp_path])))
    assert {cell for cell in cells if cell and not set(cell) <= set("-: ")} <= shown


def test_report_page_escapes_measured_text(tmp_path: Path) -> None:
    bad = "<script>alert('x')</script>&\""
    path = write(tmp_path, "plain", "similar", build_rows([bad, "b"], [bad], 1))
    document = json.loads(path.read_text(encoding="utf-8"))
    document["dataset"]["name"] = bad
    document["fitted_to_same_questions"] = True
    path.write_text(json.dumps(document), encoding="utf-8")
    for turns in (1, 3):
        document["summary"] = build_rows([bad, "b"], [bad], turns)
        path.write_text(json.dumps(document), encoding="utf-8")
        page = html([tmp_path])
        assert "script" not in Outline(page).names
        assert "<script" not in page
        assert "&lt;script&gt;" in page
    assert "Weights fitted to the same questions" in page


def test_lines_by_turn_and_bars_where_arms_are_compared(tmp_path: Path) -> None:
    write(tmp_path, "2wiki", "similar", build_rows(["default"], ["judged", "others"], 3))
    write(tmp_path, "2wiki", "noise", build_rows(["full", "frozen"], ["judged", "others"], 3))
    write(tmp_path, "2wiki", "hostile", build_rows(["full", "uncapped"], ["judged", "others"], 1))
    one, judged, others, bars = list_charts(tmp_path)
    assert isinstance(one, Lines)
    assert one.series["judged"] == [(turn, pytest.approx(0.4 + 0.1 * turn)) for turn in range(4)]
    assert isinstance(judged, Lines)
    assert isinstance(others, Lines)
    assert (list(judged.series), others.title) == (["full", "frozen"], "2wiki: R@5, others")
    assert isinstance(bars, Bars)
    assert bars.series == {
        "before": [pytest.approx(0.4)] * 2,
        "full": [pytest.approx(0.5)] * 2,
        "uncapped": [pytest.approx(0.51)] * 2,
    }


def test_each_protocol_has_its_chart(tmp_path: Path) -> None:
    keys = [
        row(adapt_table.arm("dense", 0.5, name), adapt_table.ADAPTED_GROUP, turn, value)
        for name, turn, value in ((adapt_table.BASE, 0, 0.5), ("supported", 1, 1.0), ("published", 1, 0.75))
    ]
    write(tmp_path, "scifact", "adapt", keys)
    stretches = [row(arm, f"arrivals {at}", 0, at / 4) for at in (1, 2) for arm in ("memory off", "memory read")]
    write(tmp_path, "2wiki", "clicks", stretches)
    marks = {"em": 0.1, "f1": 0.2, "contains": 0.3, "strict": 0.4, "lenient": 0.5, "prompt_tokens": 900.0}
    write(tmp_path, "medical", "answers", [row("default", "all questions", 0, 0.5) | marks])
    rated = [
        row(rule.name, group, turn, 0.5) | {"rated": 0.6 + turn / 10}
        for rule in HUMAN
        for group in (ratings_table.TAUGHT_GROUP, ratings_table.OTHER_GROUP)
        for turn in (0, 1)
    ]
    write(tmp_path, "feedbackqa", "human", rated)
    stream, adapted, human, answered = list_charts(tmp_path)
    assert isinstance(stream, Lines)
    assert stream.series["memory read"] == [(1, 0.25), (2, 0.5)]
    assert isinstance(adapted, Bars)
    assert (adapted.title, adapted.categories) == ("scifact, dense, 50%: nDCG@10", [adapt_table.ADAPTED_GROUP])
    assert adapted.series == {adapt_table.BASE: [0.25], "supported": [0.5], "published": [0.375]}
    assert isinstance(human, Bars)
    assert human.series[HUMAN[0].name] == [pytest.approx(0.7), 0.5]
    assert isinstance(answered, Bars)
    assert answered.series == {"medical, default": [0.1, 0.2, 0.3, 0.4, 0.5]}
    Outline(html([tmp_path]))


def test_bars_are_as_long_as_their_figures() -> None:
    said = figure(Bars("t", ["a", "b"], {"x": [0.5, None], "y": [1.0, 0.0]}))
    widths = [float(width) for width in re.findall(r'width="([\d.]+)"', said)]
    assert widths == pytest.approx([widths[1] / 2, widths[1], 0.0], abs=0.1)
    assert said.count("<rect") == 3


def test_lines_run_from_edge_to_edge_and_upwards() -> None:
    said = figure(Lines("t", "x", "y", {"up": [(0, 0.2), (2, 0.4), (4, 0.6)]}))
    places = [(float(x), float(y)) for x, y in re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', said)]
    (x0, y0), (x1, y1), (x2, y2) = places
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.2)
    assert y0 > y1 > y2
    many = {str(at): [(0.0, 0.5), (1.0, at / 10)] for at in range(COLOURS + 1)}
    assert figure(Lines("t", "x", "y", many)).count("dashed") == 1
    assert figure(Lines("t", "x", "y", {"one": [(1, 0.5)]})).count("<circle") == 1


@pytest.mark.parametrize("ends", [(0.0, 1.0), (0.731, 0.748), (0.5, 0.5), (0.0, 0.0), (-0.2, 0.1), (0.9, 1.0)])
def test_ticks_enclose_what_is_drawn(ends: tuple[float, float]) -> None:
    found = ticks(*ends)
    assert found[0] <= ends[0] <= ends[1] <= found[-1]
    assert 2 <= len(found) <= 8
    assert found == sorted(set(found))


def test_the_command_writes_the_file(tmp_path: Path) -> None:
    cli = Cli(tmp_path, UNREACHABLE_URL, tmp_path / "data")
    write(tmp_path / "one", "2wiki", "cold", cold(0.5))
    done = cli("report", "one", "--html", "site/measured.html", "--out", "measured.md")
    assert done.stdout == "site/measured.html\nmeasured.md\n"
    assert (tmp_path / "site" / "measured.html").read_text(encoding="utf-8") == html([tmp_path / "one"])
    assert (tmp_path / "measured.md").read_text(encoding="utf-8") == gather([tmp_path / "one"])
    assert cli("report", "one", "--html", "again.html").stdout == "again.html\n"
    assert "there is no JSON report" in cli.fails("report", "nowhere", "--html", "none.html")
    assert not (tmp_path / "none.html").exists()
    with pytest.raises(ReportFileError):
        html([tmp_path / "nowhere"])


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
    (gains,) = list_charts(tmp_path)

    assert isinstance(gains, Lines)
    assert gains.series == {"dense": [(0, 0.0), (25, pytest.approx(0.1)), (50, pytest.approx(0.2))]}
    assert gains.intervals == {"dense": [(0.0, 0.0), (-0.1, 0.2), (-0.1, 0.2)]}
    assert figure(gains).count("interval") == 3
    Outline(html([tmp_path]))


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
