"""Time expressions: what is one, what is not, and the days each covers."""

from datetime import date

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engram.core.text.temporal import TimeExpression, agreement, find_time_expressions, time_constraint


def day(text: str) -> date | None:
    """ "1998" is its first day, "" an open end."""
    if not text:
        return None
    year, month, day_of_month = (*text.split("-"), "1", "1")[:3]
    return date(int(year), int(month), int(day_of_month))


@pytest.mark.parametrize(
    ("text", "phrase", "start", "end"),
    [
        ("She was born in 1931 in Turku.", "1931", "1931", "1932"),
        ("a 1974 film about bees", "1974", "1974", "1975"),
        ("( born 1942 ) a painter", "1942", "1942", "1943"),
        ("The bridge opened on 12 March 1998.", "12 March 1998", "1998-3-12", "1998-3-13"),
        ("On the 1st of May, 1886 it rained.", "1st of May, 1886", "1886-5-1", "1886-5-2"),
        ("On March 12, 1998 it rained.", "March 12, 1998", "1998-3-12", "1998-3-13"),
        ("on April 7 , 2017 , at noon", "April 7 , 2017", "2017-4-7", "2017-4-8"),
        ("released 2011-11-30 worldwide", "2011-11-30", "2011-11-30", "2011-12-1"),
        ("It closed in December 1998.", "December 1998", "1998-12", "1999"),
        ("since Sept. 2004", "since Sept. 2004", "2004-9", ""),
        ("31 February 1998", "31 February 1998", "1998-2", "1998-3"),
        ("the 1990s", "1990s", "1990", "2000"),
        ("in the 1870's", "1870's", "1870", "1880"),
        ("in the 1800s", "1800s", "1800", "1900"),
        ("in the 2000s", "2000s", "2000", "2010"),
        ("the late 1990s", "late 1990s", "1996", "2000"),
        ("mid-1998", "mid-1998", "1998-4", "1998-9"),
        ("late March 1998", "late March 1998", "1998-3-20", "1998-4"),
        ("a 19th-century church", "19th-century", "1801", "1901"),
        ("the early twentieth century", "early twentieth century", "1901", "1941"),
        ("mayor from 1998 to 2003 .", "from 1998 to 2003", "1998", "2004"),
        ("mayor between 1998 and 2003", "between 1998 and 2003", "1998", "2004"),
        ("mayor (1998-2003)", "1998-2003", "1998", "2004"),
        ("mayor ( 1998 – 2003 )", "1998 – 2003", "1998", "2004"),
        ("the 1998–99 season", "1998–99", "1998", "2000"),
        ("the rainy season 1998/1999", "1998/1999", "1998", "2000"),
        ("the 1999-00 season", "1999-00", "1999", "2001"),
        ("from Oct 1943 to Jun 1945", "from Oct 1943 to Jun 1945", "1943-10", "1945-7"),
        ("until 2001", "until 2001", "", "2002"),
        ("By the late 1990s it had closed.", "By the late 1990s", "", "2000"),
        ("as of 2024-06 it is open", "2024-06", "2024-6", "2024-7"),
        ("the 2005-06 season", "2005-06", "2005", "2007"),
        ("since 1999", "since 1999", "1999", ""),
        ("before 1950", "before 1950", "", "1950"),
        ("after 1950", "after 1950", "1951", ""),
        ("after the 1998 final", "1998", "1998", "1999"),
        ("Prior to 1914 , the mill stood empty", "Prior to 1914", "", "1914"),
        ("in use up to 1998 as a school", "up to 1998", "", "1999"),
        ("in use until at least 1942", "until at least 1942", "", "1943"),
        ("lived there from about 1857 to 1859", "from about 1857 to 1859", "1857", "1860"),
        ("pre-1914 maps", "pre-1914", "", "1914"),
        ("from 1998 onwards", "from 1998 onwards", "1998", ""),
        ("2005–present", "2005–present", "2005", ""),
        ("AD 1066", "1066", "1066", "1067"),
    ],
)
def test_single_time_expression_is_read(text: str, phrase: str, start: str, end: str) -> None:
    assert find_time_expressions(text) == (TimeExpression(phrase, day(start), day(end)),)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no time at all",
        "It sold 1500 tickets.",
        "In 1500 people came.",
        "a Boeing 747 and a 2000 kg load",
        "see page 1203 and pp. 1500-1502",
        "No. 1987 on the list",
        "The daemon listens on port 1994.",
        "port: 1994",
        "ports 1994, 1995 and 1996",
        "error code 2014, RFC 1918, ISO 2022, PID 1994",
        "timeout=1994",
        "timeout = 1994",
        "a batch size 2048",
        "It takes 1994 MB, 2048 bytes or 1850 ms.",
        "a 1920 by 1080 screen",
        "It costs $ 1994, or 1994 €.",
        "1,998 votes, 1998%, $1998, 1998.5",
        "more than 2000 were sold",
        "up to 1500 tickets",
        "down to 1200 tons",
        "the 1500-metre race",
        "model A-1998",
        "They may march on.",
        "founded in 1200 BC",
        "the wars of 1264–1146 BC, the 12th century BCE",
        "the 99th century",
    ],
)
def test_no_expression(text: str) -> None:
    assert find_time_expressions(text) == ()


def test_several_expressions_keep_their_order() -> None:
    found = find_time_expressions("Built in 1904, closed before 1950, and rebuilt in the 1990s.")

    assert [expression.text for expression in found] == ["1904", "before 1950", "1990s"]


@pytest.mark.parametrize(
    ("text", "phrases"),
    [
        ("He stood at the 2005 and 2008 elections.", ["2005", "2008"]),
        ("She won in 1990 , 1998 , and 2000 .", ["1990", "1998", "2000"]),
        ("It opened in 1998, 1500 tickets sold.", ["1998"]),
    ],
)
def test_a_year_beside_a_year_is_one_too(text: str, phrases: list[str]) -> None:
    assert [expression.text for expression in find_time_expressions(text)] == phrases


def test_a_range_that_runs_backwards_is_two_years() -> None:
    assert [expression.text for expression in find_time_expressions("2003 to 1998")] == ["2003", "1998"]


def test_constraint_joins_the_phrases_and_spans_their_days() -> None:
    constraint = time_constraint("Signed in 1904 and again in 1911, as in 1904.")

    assert constraint == TimeExpression("1904, 1911", date(1904, 1, 1), date(1912, 1, 1))


def test_constraint_is_open_where_one_of_its_phrases_is() -> None:
    assert time_constraint("in 1904 and since 1950") == TimeExpression("1904, since 1950", date(1904, 1, 1), None)
    assert time_constraint("nothing") is None


def test_another_day_agrees_less_than_a_month_or_year_that_holds_the_day() -> None:
    stated = ["12 June 2024", "June 2024", "2024", "13 June 2024", "14 June 2024", "12 June 2023"]
    days = [find_time_expressions(text)[0] for text in stated]
    starts, ends = (np.array([float(part.toordinal()) for part in parts]) for parts in zip(
        *((found.start, found.end) for found in days), strict=True
    ))  # fmt: skip
    scores = agreement(find_time_expressions("What was decided on 12 June 2024?"), starts, ends)
    assert scores[0] == 1.0
    assert list(scores) == sorted(scores, reverse=True)
    one_day = 365.0 / 366.0  # half agreement lies 365 days apart
    assert scores[3] == pytest.approx(one_day * (1 + 1 / 2) / 2)
    assert scores[4] == pytest.approx(365.0 / 367.0 * (1 + 1 / 3) / 2)


def test_interval_without_a_day_is_refused() -> None:
    with pytest.raises(ValueError, match="ends before it starts"):
        TimeExpression("never", date(2000, 1, 1), date(2000, 1, 1))


def compute_agreements(asked: str, *stated: str) -> list[float]:
    found = [find_time_expressions(text) for text in stated]
    starts = [date.toordinal(one[0].start) if one and one[0].start else np.nan for one in found]
    ends = [date.toordinal(one[0].end) if one and one[0].end else np.nan for one in found]
    return list(agreement(find_time_expressions(asked), np.array(starts), np.array(ends)))


def test_agreement_falls_from_the_same_days_to_those_long_past() -> None:
    shares = compute_agreements("from 1998 to 2003", "in 1998", "in 2001", "in 2010", "19th century")

    assert shares[0] == 1.0
    assert shares == sorted(shares, reverse=True)
    assert len(set(shares)) == 4


def test_meeting_a_short_time_says_more_than_meeting_a_century() -> None:
    day_of, century = compute_agreements("on 5 May 1950", "in 1950", "20th century")

    assert day_of > 0.8
    assert century < 0.6


def test_an_open_end_reaches_on() -> None:
    onwards, ended = compute_agreements("in 2010", "since 1950", "until 1950")

    assert onwards > 0.5 > ended


def test_undated_expressions_agree_with_none() -> None:
    assert compute_agreements("in 2010", "never") == [0.0]
    assert agreement((), np.array([700_000.0]), np.array([np.nan])).tolist() == [0.0]
    assert agreement((TimeExpression("", None, None),), np.array([700_000.0]), np.array([np.nan])).tolist() == [0.0]


def test_the_best_of_several_asked_times_counts() -> None:
    assert compute_agreements("in 1950 or in 1990", "1990", "1950") == [1.0, 1.0]


@st.composite
def expressions(draw: st.DrawFn) -> TimeExpression:
    start, end = sorted(draw(st.lists(st.dates(), min_size=2, max_size=2, unique=True)))
    return TimeExpression("", draw(st.sampled_from([start, None])), draw(st.sampled_from([end, None])))


@given(expressions(), expressions())
def test_agreement_is_symmetric_and_a_share(a: TimeExpression, b: TimeExpression) -> None:
    def compute_agreement(asked: TimeExpression, stated: TimeExpression) -> float:
        days = [np.nan if day is None else float(day.toordinal()) for day in (stated.start, stated.end)]
        return float(agreement((asked,), np.array(days[:1]), np.array(days[1:]))[0])

    assert compute_agreement(a, b) == compute_agreement(b, a)
    assert 0.0 <= compute_agreement(a, b) <= 1.0


pieces = st.sampled_from(
    "in since until to and - – 1998 2003 1998-99 12 March may, the late 1990s 19th century BC ( ) page".split(" ")
)


@given(st.one_of(st.text(), st.lists(pieces).map(" ".join)))
@example("5 ſept 1998")
@example("١٩٩٨ in 1998")
@example("2100s to 2100")
def test_any_text_gives_phrases_of_it_in_order(text: str) -> None:
    found = find_time_expressions(text)

    position = 0
    for expression in found:
        position = text.index(expression.text, position) + len(expression.text)
    assert (time_constraint(text) is None) == (not found)
