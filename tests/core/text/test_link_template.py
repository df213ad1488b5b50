"""Templates of links: what is refused, and what a link is made of."""

import pytest

from engram.core.text.link_template import check_template, make_link

VALUES = {"source": "hand book/a&b.md", "heading": "What? #1", "page": "", "title": "Ä", "id": "a/b#7"}


@pytest.mark.parametrize(
    ("template", "link"),
    [
        ("https://wiki", "https://wiki"),
        ("https://wiki/{source}", "https://wiki/hand%20book/a%26b.md"),
        ("https://wiki/{source}#{heading}", "https://wiki/hand%20book/a%26b.md#What%3F%20%231"),
        ("https://wiki/{source}#page={page}", "https://wiki/hand%20book/a%26b.md"),
        ("https://wiki?p={page}", None),
        ("HTTP://wiki:8080/x?t={title}&i={id}", "HTTP://wiki:8080/x?t=%C3%84&i=a%2Fb%237"),
        ("https://wiki/{{x}}", "https://wiki/{x}"),
    ],
)
def test_a_link(template: str, link: str | None) -> None:
    assert make_link(check_template(template), VALUES) == link


@pytest.mark.parametrize(
    "template",
    [
        "",
        "wiki/{source}",
        "javascript:alert(1)//{source}",
        "ftp://wiki/{source}",
        "https://{source}/",
        "https://wiki{source}",
        "https:///{source}",
        "https://wiki/{document}",
        "https://wiki/{}",
        "https://wiki/{0}",
        "https://wiki/{source",
        "https://wiki/source}",
        "https://wiki/{source!r}",
        "https://wiki/{source:>20}",
        "https://wiki/{source.__class__}",
        "https://wiki/a b",
        "https://[/{source}",
        "https://wiki/" + "x" * 2_000,
    ],
)
def test_a_template_that_is_refused(template: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        check_template(template)
