"""Several reports on one page."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from engram_evaluation import adapt_table, people_table, ratings_table
from engram_evaluation.learning_variations import RULES, format_noisy_arm
from engram_evaluation.report_files import ReportFileError
from engram_evaluation.report_page import gather
from engram_evaluation.report_table import Grid, SummaryLine
from engram_evaluation.robustness import rows
from engram_evaluation.table_report import TableReport
from tests.support.command import UNREACHABLE_URL, Cli


def row(arm: str, group: str, turn: int, value: float, n: int = 10) -> dict[str, Any]:
    measured = {"recall@5": value, "recall@10": value + 0.01, "ndcg@10": value / 2, "hops": 2.5, "ms": 12.34}
    return {"arm": arm, "group": group, "turn": turn, "n": n} | measured


def write(folder: Path, dataset: str, protocol: str, rows: list[dict[str, Any]], arguments: str = "") -> Path:
    """A report as ``engram evaluate`` writes it, without its phases."""
    folder.mkdir(exist_ok=True)
    document = {
        "command": f"engram evaluate {dataset} --protocol {protocol}{arguments}",
        "options": {"protocol": protocol},
        "dataset": {"name": dataset, "passages": 1234, "questions": 10},
        "engine": {"version": "1", "code": "abc", "embedding_model": "/srv/models/encoder"},
        "summary": rows,
    }
    path = folder / f"{dataset}-{protocol}{arguments.replace(' ', '')}.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def change(group: str, metric: str, before: float, after: float) -> dict[str, Any]:
    counts = {"turn": 1, "questions": 20, "gained": 3, "lost": 2}
    figures = {"before": before, "after": after, "low": -0.1, "high": 0.2, "off": before}
    return {"arm": "default", "group": group, "metric": metric} | counts | figures


def add_changes(path: Path, changes: list[dict[str, Any]]) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(document | {"changes": changes}), encoding="utf-8")


def test_what_real_people_said_stands_in_one_table(tmp_path: Path) -> None:
    """Of raters by their ratings, of graded answers by the labels; a set without either is left out."""
    same, everything = ratings_table.TAUGHT_GROUP, ratings_table.OTHER_GROUP
    rated = write(tmp_path, "feedbackqa", "human", [row("noise per rating", same, turn, 0.5) for turn in (0, 1)])
    add_changes(rated, [change(same, "graded", 0.6, 0.7), change(everything, "ndcg@10", 0.5, 0.5)])
    graded = write(tmp_path, "liveqa_med", "similar", [row("default", "judged questions", 0, 0.5)])
    judged = [change("judged questions", metric, 0.7, 0.9) for metric in ("ndcg@10", "graded")]
    add_changes(graded, judged)
    plain = write(tmp_path, "2wiki", "similar", [row("default", "judged questions", 0, 0.5)])
    add_changes(plain, [change("judged questions", "ndcg@10", 0.1, 0.2)])
    page = gather([tmp_path])
    people = page.partition(f"## {people_table.TITLE}")[2].partition("## ")[0]
    assert cells(people, f"feedbackqa: {same}") == [["20", "0.600", "0.700", "-0.100 to +0.200", "0.600", "3", "2"]]
    assert len(cells(people, f"feedbackqa: {everything}")) == 1
    assert [line[:3] for line in cells(people, "liveqa_med: judged questions")] == [["20", "0.700", "0.900"]]
    assert "2wiki" not in people
    changed = "(-0.100 to +0.200), 2 of 20 lose"
    assert [f"0.100 -> 0.200 {changed}", f"0.700 -> 0.900 {changed}"] in cells(page, "judged questions")
    graded_line = next(line for line in page.splitlines() if line.startswith("| nDCG@10 by grades before -> after"))
    assert graded_line.endswith("| 2wiki | liveqa_med |")


def cold(value: float) -> list[dict[str, Any]]:
    rows = [row("dense", "all questions", 0, value), row("default", "all questions", 0, value + 0.1)]
    del rows[0]["hops"]
    return rows


def cells(page: str, first: str) -> list[list[str]]:
    """The lines of all tables whose first cell is ``first``."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines()]
    return [line[1:] for line in lines if line[0] == first]


def test_a_column_for_each_data_set_and_the_command_that_made_it(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    write(one, "hotpotqa", "cold", cold(0.5))
    write(one, "2wiki", "cold", cold(0.25))
    turns = [row("default", "judged questions", turn, 0.1 * turn) for turn in range(11)]
    write(other, "2wiki", "similar", turns, " --turns 10")
    page = gather([one, other])
    assert page == gather([other, one])
    assert cells(page, "2wiki") == [["1,234", "10"]]
    assert cells(page, "R@5 (all@5) / R@10") == [["2wiki", "hotpotqa"], ["2wiki"]]
    assert cells(page, "dense") == [
        ["0.250 / 0.260", "0.500 / 0.510"],
        ["10: 12.3 ms", "10: 12.3 ms"],
    ]
    assert cells(page, "default")[1] == ["10: 2.50 hops, 12.3 ms"] * 2
    shown = [turn for turn in range(11) if cells(page, f"judged questions, turn {turn}")]
    assert shown == [1, 10]
    assert cells(page, "judged questions, before")[0] == ["0.000 / 0.010"]
    assert page.index("## cold") < page.index("## similar")
    assert "```\nengram evaluate 2wiki --protocol cold\nengram evaluate hotpotqa --protocol cold\n```" in page
    assert "engram evaluate 2wiki --protocol similar --turns 10" in page
    assert "Engram 1, code abc, encoder." in page
    assert not re.search(r"(?<!\w)/\w+/", page)  # no path of the machine that measured


def test_all_found_stands_beside_recall_where_it_was_measured(tmp_path: Path) -> None:
    write(tmp_path, "2wiki", "cold", [row("dense", "all questions", 0, 0.5) | {"all@5": 0.25}])
    assert cells(gather([tmp_path]), "dense")[0] == ["0.500 (0.250) / 0.510"]


def test_runs_with_other_options_stand_apart(tmp_path: Path) -> None:
    rows = [row("default", "judged questions", turn, 0.5) for turn in (0, 1)]
    write(tmp_path, "musique", "similar", rows)
    write(tmp_path, "2wiki", "similar", rows)
    write(tmp_path, "musique", "similar", rows, " --freeze task")
    page = gather([tmp_path])
    assert page.count("## ") == 1
    assert cells(page, "R@5 (all@5) / R@10") == [["2wiki", "musique"], ["musique"]]


def test_figures_that_the_weights_have_seen_are_marked(tmp_path: Path) -> None:
    for name, said in (("2wiki", {"fitted_to_same_questions": True}), ("musique", {}), ("hotpotqa", {})):
        path = write(tmp_path, name, "cold", cold(0.5))
        document = json.loads(path.read_text(encoding="utf-8")) | said
        if name == "musique":  # an older report says it by the names that the weights were fitted to
            document["engine"]["ranking_prior"] = ["fingerprint", "2wiki", "musique"]
        path.write_text(json.dumps(document), encoding="utf-8")
    page = gather([tmp_path])
    assert page.count("Weights fitted to the same questions") == 1
    assert "**Weights fitted to the same questions: 2wiki, musique.**" in page


def write_tables(folder: Path, protocol: str, dataset: str, title: str = "") -> None:
    """A report of a protocol with tables of its own."""
    grid = Grid(["policy", "F1"], [["rules", "0.500"]])
    command = f"engram evaluate {dataset} --protocol {protocol}"
    TableReport(protocol, dataset, command, {title: grid}, "F1: of <words>.", [{"f1": 0.5}]).write(folder, protocol)


def test_protocols_with_tables_of_their_own_stand_below_the_others(tmp_path: Path) -> None:
    write(tmp_path, "musique", "cold", cold(0.5))
    write_tables(tmp_path / "one", "absent", "2wiki")
    write_tables(tmp_path / "two", "absent", "musique", "small, 1 questions")
    page = gather([tmp_path, tmp_path / "one", tmp_path / "two"])
    assert re.findall("^## (.*)$", page, re.MULTILINE) == ["cold", "absent"]
    assert "```\nengram evaluate 2wiki --protocol absent\n```\n\nF1: of <words>." in page
    assert cells(page, "2wiki: policy") == [["F1"]]
    assert cells(page, "musique: small, 1 questions: policy") == [["F1"]]
    assert cells(page, "rules") == [["0.500"]] * 2


def test_a_protocol_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    write_tables(tmp_path, "nothing", "2wiki")
    with pytest.raises(ReportFileError, match="there is no protocol 'nothing'"):
        gather([tmp_path])


def test_a_page_of_such_protocols_alone_has_no_corpora(tmp_path: Path) -> None:
    write_tables(tmp_path, "absent", "2wiki")
    page = gather([tmp_path])
    assert "passages" not in page.split("## absent")[1]
    assert "Made by" not in page


def noise_rows() -> list[dict[str, Any]]:
    """Every rule starts at 0.4; the first gains 0.4 and keeps three quarters of it, the second gains nothing."""
    gained = {RULES[0].name: (0.4, 0.3), RULES[1].name: (0.0, -0.1)}
    return [
        row(format_noisy_arm(rule.name, share), group, turn, 0.4 + (turn and gained.get(rule.name, (0.2, 0.1))[at]))
        for group in ("judged questions", "unjudged questions")
        for at, share in enumerate((0.0, 0.2))
        for rule in RULES
        for turn in (0, 1)
    ]


def test_noise_rows_match_hand_computed_gains(tmp_path: Path) -> None:
    keys = ("arm", "group", "turn", "n")
    lines = [
        SummaryLine(*(r[key] for key in keys), values={k: v for k, v in r.items() if k not in keys})
        for r in noise_rows()
    ]
    found = rows(lines)
    assert [(one.group, one.rule) for one in found] == [
        (group, rule.name) for group in ("judged questions", "unjudged questions") for rule in RULES
    ]
    assert found[0].gains["recall@5"] == pytest.approx((0.4, 0.3))
    assert found[0].share_kept("recall@5") == pytest.approx(0.75)
    assert found[0].gains["ndcg@10"] == pytest.approx((0.2, 0.15))
    assert found[1].share_kept("recall@5") is None
    assert found[1].cells("recall@5") == ["+0.000", "-0.100", ""]
    write(tmp_path, "2wiki", "noise", noise_rows())
    assert cells(gather([tmp_path]), f"judged questions, {RULES[0].name}") == [["+0.400 / +0.300 / 75%"]]


def test_evolved_keys_have_tables_of_their_own(tmp_path: Path) -> None:
    def rows(base: float, evolved: float) -> list[dict[str, Any]]:
        found = [
            row(adapt_table.arm("dense", 0.5, keys), group, turn, 2 * value)
            for group in (adapt_table.ADAPTED_GROUP, adapt_table.OTHER_GROUP)
            for keys, turn, value in ((adapt_table.BASE, 0, base), ("supported", 1, evolved))
        ]
        priced = zip(adapt_table.PRICED_ARMS, (0, 1, 0), (base, evolved, 0.75), strict=True)
        return found + [
            row(adapt_table.arm("dense", 0.5, keys), adapt_table.PRICE, turn, 2 * v) for keys, turn, v in priced
        ]

    write(tmp_path, "scifact", "adapt", rows(0.25, 0.5))
    write(tmp_path, "musique", "adapt", rows(0.125, 0.25))
    page = gather([tmp_path])
    assert cells(page, "musique: nDCG@10") == [["adapted", "near", "sharing", "others"]]
    assert cells(page, "questions, 50%") == [["10", "", "", "10"]] * 2
    assert cells(page, "dense, 50%, supported") == [
        ["0.125 -> 0.250", "", "", "0.125 -> 0.250"],
        ["0.250 -> 0.500", "", "", "0.250 -> 0.500"],
    ]
    assert cells(page, adapt_table.PRICE_TITLE) == [["musique", "scifact"]]
    assert cells(page, "dense, 50%, expanded questions") == [["0.750, 12.3", "0.750, 12.3"]]
    assert page.index("50%, evolved keys") < page.index("50%, expanded questions")
    assert "engram evaluate musique --protocol adapt\nengram evaluate scifact --protocol adapt" in page


def test_invalid_or_duplicate_reports_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ReportFileError, match="there is no JSON report"):
        gather([tmp_path])
    path = write(tmp_path, "2wiki", "cold", cold(0.5))
    write(tmp_path / "again", "2wiki", "cold", cold(0.5))
    with pytest.raises(ReportFileError, match="another report is of the same run: engram evaluate 2wiki"):
        gather([tmp_path, tmp_path / "again"])
    for wrong in ("{", "[]", "{}", path.read_text(encoding="utf-8").replace('"cold"', '"tepid"')):
        path.write_text(wrong, encoding="utf-8")
        with pytest.raises(ReportFileError, match=re.escape(str(path))):
            gather([tmp_path])


def test_the_command_writes_or_prints_the_page(tmp_path: Path) -> None:
    cli = Cli(tmp_path, UNREACHABLE_URL, tmp_path / "data")
    write(tmp_path / "one", "2wiki", "cold", cold(0.5))
    page = gather([tmp_path / "one"])
    assert cli("report", "one").stdout == page
    done = cli("report", "one", "--out", "docs/measured.md")
    assert done.stdout == "docs/measured.md\n"
    assert (tmp_path / "docs" / "measured.md").read_text(encoding="utf-8") == page
    assert "there is no JSON report" in cli.fails("report", "nowhere")
    assert "--freeze must be one of task, time, recall, weights" in cli.fails(
        "evaluate", "sample", "--protocol", "similar", "--freeze", "tsk"
    )
    assert "--fractions must be numbers separated by commas, not 'half'." in cli.fails(
        "evaluate", "sample", "--protocol", "adapt", "--fractions", "half"
    )
