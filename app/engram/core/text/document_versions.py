"""Dates and versions of documents: since when a document holds, and which document replaces it.

A document says it in its metadata, in lines such as "Valid from: 1 March 2025" or "Replaces the travel policy
2023", in its name, or in its title. Documents of one title with different dates are versions as well, unless
each is one of a series, as minutes are.
"""

import re
import zlib
from calendar import monthrange
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import pairwise
from typing import Any, Literal

from engram.core.text.temporal import find_time_expressions

DateOrigin = Literal["metadata", "mail", "line", "name", "title", "hand"]
"""What tells a document's date: metadata, a mail's header, a line of its text, its name or title, or a person."""
Standing = Literal["draft", "retired"]
LinkOrigin = Literal["statement", "title", "hand"]
"""What tells that a document replaces another: a statement of either, their titles and dates, or a person."""

SKETCH_SIZE = 64
LEAST_SIMILARITY = 0.3
"""Estimated Jaccard similarity of two texts of one title, from which on one is a version of the other."""
READ_CHARACTERS = 20_000
"""First characters of a document that are read for what it says of itself."""
_LINE_CHARACTERS = 240
"""Longest line that may say what a document replaces."""

_DATE_KEYS = (
    *("valid_from", "effective_date", "effective_from", "effective", "in_force_from", "gültig_ab", "gueltig_ab"),
    *("en_vigueur", "en_vigueur_le", "vigente_desde", "válido_desde", "valido_desde", "vigencia"),
    *("date", "datum", "fecha", "stand", "updated", "last_updated", "lastmod", "published", "aktualisiert"),
)
_END_KEYS = (
    *("valid_until", "valid_to", "effective_until", "expires", "expiry_date", "gültig_bis", "gueltig_bis"),
    *("valable_jusqu_au", "vigente_hasta", "válido_hasta", "valido_hasta"),
)
_REPLACES_KEYS = ("supersedes", "replaces", "ersetzt", "remplace", "sustituye", "reemplaza")
_REPLACED_KEYS = ("superseded_by", "replaced_by", "ersetzt_durch", "remplacé_par", "remplace_par", "sustituido_por")
_STATUS_KEYS = ("status", "state", "statut", "estado")
_DRAFT = re.compile(
    r"\b(?:draft|proposed|proposal|entwurf|vorschlag|brouillon|projet|proposé|borrador|propuest[ao])\b"
)
_RETIRED = re.compile(
    r"\b(?:superseded|replaced|obsolete|deprecated|retired|withdrawn|expired|archived|rejected|ersetzt|überholt|veraltet"
    r"|aufgehoben|ungültig|remplacée?|obsolète|abrogée?|périmée?|sustituid[ao]|reemplazad[ao]|obsolet[ao]|derogad[ao]"
    r"|no longer|nicht mehr|n'est plus|plus en vigueur|ya no)\b"
)
_DENIED_WORD = re.compile(
    r"\b(?:not|never|nicht|nie|non|pas|no)\s+(?:(?:yet|noch|encore|an?|eine?|une?|uno)\s+)?(?!(?:mehr|longer)\b)[^\W_]+"
)
"""A word of a status that is said not to hold."""
_DATED_LINE = re.compile(
    r"^\W*(?:[\w ]{0,24}\b)?(?:valid (?:from|since|as of)|effective(?: date| from| as of)?|in force (?:from|since)"
    r"|gültig (?:ab|seit|vom)|gilt ab|in kraft (?:seit|ab)|tritt am"
    r"|en vigueur (?:depuis|à partir|à compter|le|au)|valable (?:à partir|depuis|dès)"
    r"|applicable (?:à partir|depuis|au)|vigente desde|válid[ao] desde|en vigor desde|vigencia)\b[^\n]{0,40}",
    re.IGNORECASE | re.MULTILINE,
)
_STAMP = re.compile(r"^\W*(?:as of|stand)\b\W*(?P<date>[^\n]{4,40})$", re.IGNORECASE | re.MULTILINE)
"""A line of a date alone behind words that also begin sentences: "As of 2019 we had ten shops" dates nothing."""
_SELF = (
    r"(?:(?:th[ie]se?|the present|diese[rs]?|die vorliegende|das vorliegende|ce(?:t|tte)?|la présente"
    r"|le présent|est[ae]|la presente|el presente)\s+[\w -]{1,40}?\s+|(?:it|sie|es|elle|il)\s+)?"
)
_REPLACES = re.compile(
    rf"^\W*(?:status\W+\w+\W+)?{_SELF}(?:hereby\s+)?(?:supersedes|replaces|ersetzt|löst|remplace|annule et remplace"
    rf"|abroge|sustituye(?: a)?|reemplaza(?: a)?|deroga)\b(?!\s+durch)\W*(?P<named>.+?)(?:\s+ab)?\W*$",
    re.IGNORECASE,
)
_REPLACED_BY = re.compile(
    r"^.{0,60}?\b(?:superseded by|replaced by|ersetzt durch|abgelöst durch|abgelöst von|remplacée? par"
    r"|sustituid[ao] por|reemplazad[ao] por)\b\W*(?P<named>.+?)\W*$"
    r"|^.{0,60}?\b(?:wurde|wird|ist)\s+durch\s+(?P<inner>.+?)\s+(?:ersetzt|abgelöst)\W*$",
    re.IGNORECASE,
)
_STATUS_LINE = re.compile(
    r"^\W*(?:status|statut|estado)\s*[:=]\s*(?P<status>.{1,80})$", re.IGNORECASE | re.MULTILINE
)
_SENTENCE_END = re.compile(r"(?<=[.!?。])\s+|\n+")

_NAME_DATE = re.compile(
    r"(?<!\d)(?P<year>(?:19|20)\d\d)(?:[-_. /]?(?P<month>0[1-9]|1[0-2])"
    r"(?:[-_. /]?(?P<day>0[1-9]|[12]\d|3[01]))?)?(?!\d)"
)
_WORD = re.compile(r"[^\W_]+")
_VERSION = re.compile(
    r"\b(?:v|ver|vers|version|rev|revision|revisión|révision|fassung|ausgabe|edition|édition|edición|versión)\W?\s*"
    r"\d+(?:[._]\d+)*\b|\bv\d+(?:[._]\d+)*\b",
    re.IGNORECASE,
)
_BESIDE_TITLE = frozenset(
    """
    from as of since valid effective version ver vers rev revision v new old current former draft final updated
    ab vom von seit stand gültig fassung neu neue alt alte entwurf aktuell endgültig
    du au de depuis partir vigueur valable nouvelle nouveau ancienne ancien projet brouillon
    del desde vigente vigencia versión nueva nuevo antigua antiguo borrador the der die das le la les el los las
    """.split()
)
"""Words that tell a version, or that lead to its date."""
_PLAIN = frozenset(
    """
    a an the this that and or of from for to in on our its earlier previous former old prior version versions
    edition policy document guideline guide rules decision page dated issued
    der die das den dem des ein eine vom von für und frühere früheren vorherige bisherige alte fassung richtlinie
    dokument regelung entscheidung
    le la les l un une de du des d et pour à précédente ancien ancienne politique règlement document décision
    version el los las una del para y anterior antigua política documento decisión versión
    """.split()
)
"""Words that name no document alone."""
_SERIES = re.compile(
    r"minutes|meeting|protokoll|besprech|sitzung|bericht|report|newsletter|rundbrief|compte[- ]rendu|procès|réunion"
    r"|reunión|\bactas?\b|informe|rapport|journal|diary|\blog\b|changelog|release|invoice|rechnung|factur|standup"
    r"|weekly|monthly|daily|wöchentlich|hebdo|semanal|mensual|agenda|tagesordnung|ordre du jour"
)
"""Titles of documents that come again and again, none of which replaces the one before."""


@dataclass(frozen=True, slots=True)
class DocumentClaims:
    """A document's statements about its own version.

    Attributes:
        valid_from: its date; None: nothing tells it.
        dated_by: what tells the date.
        valid_until: its last day; None: none is stated.
        status: ``draft``, ``retired`` if it holds no more, or None.
        version_key: its title without dates and versions; documents of one key may be versions. None: it has none.
        sketch: the least ``SKETCH_SIZE`` hashes of its words, in order.
        supersedes, superseded_by: how it names other documents.
    """

    valid_from: date | None = None
    dated_by: DateOrigin | None = None
    valid_until: date | None = None
    status: Standing | None = None
    version_key: str | None = None
    sketch: tuple[int, ...] = ()
    supersedes: tuple[str, ...] = ()
    superseded_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class VersionedDocument:
    """A document among those that may be its versions.

    Attributes:
        is_fixed: whether a person said what replaces it: ``replaced_by``, or nothing.
    """

    id: int
    source: str
    title: str
    claims: DocumentClaims
    is_fixed: bool = False
    replaced_by: int | None = None


@dataclass(frozen=True, slots=True)
class VersionPlace:
    """Place of a document in a chain of versions.

    Attributes:
        replaced_by: the next version; None: it is the last.
        origin: what tells so; None for the last, unless a person said so.
        chain: the last document of the chain.
        steps: replacements from it to the last version.
    """

    replaced_by: int | None
    origin: LinkOrigin | None
    chain: int
    steps: int


def read_claims(
    source: str, title: str | None, metadata: Mapping[str, Any], text: str, language: str | None
) -> DocumentClaims:
    """Read what a document says of itself.

    The date is the first one of: metadata, a mail's header, a line of the text that says from when it holds, the
    document's name, its title.

    Args:
        metadata: of its first passage.
        text: of the document, of which ``READ_CHARACTERS`` are read.
        language: ISO 639 code of the text.
    """
    fields = {
        re.sub(r"[\s-]+", "_", key.strip().casefold()): str(value) if type(value) is int else value
        for key, value in metadata.items()
    }
    text = text[:READ_CHARACTERS]
    is_mail = metadata.get("format") == "email"
    valid_from, dated_by = _read_date(source, title, fields, text, language, is_mail)
    superseded_by = [*_list_named(fields, _REPLACED_KEYS)]
    supersedes = [*_list_named(fields, _REPLACES_KEYS)]
    if not is_mail:
        for line in _SENTENCE_END.split(text):
            if not 0 < len(line) <= _LINE_CHARACTERS:
                continue
            if found := _REPLACED_BY.match(line):
                superseded_by.append(found["named"] or found["inner"])
            elif found := _REPLACES.match(line):
                supersedes.append(found["named"])
    return DocumentClaims(
        valid_from,
        dated_by,
        next((end for key in _END_KEYS if (end := _parse_last_day(fields.get(key), language))), None),
        _read_status(fields, text),
        None if is_mail else _build_key(title or _name_stem(source), language),
        sketch_words(text),
        tuple(dict.fromkeys(supersedes)),
        tuple(dict.fromkeys(superseded_by)),
    )


def sketch_words(text: str) -> tuple[int, ...]:
    """The least ``SKETCH_SIZE`` hashes of a text's words, in order (Broder 1997, bottom-k sketch)."""
    words = {word.casefold() for word in _WORD.findall(text)}
    return tuple(sorted(zlib.crc32(word.encode()) for word in words)[:SKETCH_SIZE])


def estimate_similarity(first: Sequence[int], second: Sequence[int]) -> float:
    """Estimate the Jaccard similarity of two texts' words from their sketches, in [0, 1] (Broder 1997)."""
    least = sorted({*first, *second})[:SKETCH_SIZE]
    return len({*first} & {*second} & {*least}) / len(least) if least else 0.0


def link_versions(documents: Sequence[VersionedDocument]) -> dict[int, VersionPlace]:
    """Place documents in chains of versions; document -> its place, for those in a chain.

    What a person said comes before what documents say, and this before titles and dates. A link that would close a
    circle is left out.
    """
    by_id = {document.id: document for document in documents}
    links: list[tuple[int, int, LinkOrigin]] = [
        (one.id, one.replaced_by, "hand")
        for one in documents
        if one.is_fixed and one.replaced_by is not None and one.replaced_by in by_id
    ]
    for link in (*_find_stated(documents), *_find_titled(documents)):
        if not by_id[link[0]].is_fixed:
            links.append(link)
    successors: dict[int, int] = {}
    origins: dict[int, LinkOrigin] = {}
    for earlier, later, origin in links:
        if earlier not in successors and not closes_circle(successors, earlier, later):
            successors[earlier], origins[earlier] = later, origin
    places = {}
    for document_id in {*successors, *successors.values()}:
        last, steps = document_id, 0
        while last in successors:
            last, steps = successors[last], steps + 1
        places[document_id] = VersionPlace(successors.get(document_id), origins.get(document_id), last, steps)
    return places


def closes_circle(successors: Mapping[int, int], earlier: int, later: int) -> bool:
    """Whether a document would replace itself, directly or through others, if ``later`` replaced ``earlier``.

    Args:
        successors: document -> the one that replaces it, without circles.
    """
    last = later
    while last != earlier and last in successors:
        last = successors[last]
    return last == earlier


def _find_stated(documents: Sequence[VersionedDocument]) -> Iterator[tuple[int, int, LinkOrigin]]:
    """Earlier and later document of each replacement that one of them states."""
    if not any(one.claims.supersedes or one.claims.superseded_by for one in documents):
        return
    names = _DocumentNames(documents)
    for document in documents:
        for named in document.claims.superseded_by:
            if (later := names.find(named, document)) is not None:
                yield document.id, later, "statement"
        for named in document.claims.supersedes:
            if (earlier := names.find(named, document)) is not None:
                yield earlier, document.id, "statement"


def _find_titled(documents: Iterable[VersionedDocument]) -> Iterator[tuple[int, int, LinkOrigin]]:
    """Earlier and later document of one title, of different dates, whose texts are alike."""
    by_key: defaultdict[str, list[VersionedDocument]] = defaultdict(list)
    for document in documents:
        key = document.claims.version_key
        if key is not None and document.claims.valid_from is not None and not _SERIES.search(key):
            by_key[key].append(document)
    for group in by_key.values():
        group.sort(key=lambda one: (one.claims.valid_from or date.min, one.id))
        by_date = defaultdict(list)
        for document in group:
            by_date[document.claims.valid_from].append(document)
        for earlier, later in pairwise(by_date.values()):
            for one in earlier:
                if estimate_similarity(one.claims.sketch, later[-1].claims.sketch) >= LEAST_SIMILARITY:
                    yield one.id, later[-1].id, "title"


class _DocumentNames:
    """Finds the documents that others name."""

    def __init__(self, documents: Sequence[VersionedDocument]) -> None:
        self._documents = documents
        self._words = [
            _split_words(f"{_NAME_DATE.sub(' ', _name_stem(one.source))} {one.source} {one.title}")
            for one in documents
        ]
        self._by_source: defaultdict[str, list[int]] = defaultdict(list)
        for at, one in enumerate(documents):
            for name in {one.source, one.source.rpartition("/")[2], _name_stem(one.source), one.title}:
                self._by_source[name.casefold()].append(at)

    def find(self, named: str, document: VersionedDocument) -> int | None:
        """The one other document that the words name; None: none, or several."""
        exact = [at for at in self._by_source[named.strip().casefold()] if self._documents[at] is not document]
        if len(exact) == 1:
            return self._documents[exact[0]].id
        times = [one for one in find_time_expressions(named) if one.start is not None]
        undated = named
        for time in times:
            undated = undated.replace(time.text, " ")
        requested = _split_words(named)
        words = _split_words(undated) - _PLAIN
        if not words and not times:
            return None
        found: list[tuple[int, int]] = []
        for at, other in enumerate(self._documents):
            if other is document:
                continue
            dated = other.claims.valid_from
            is_dated = any(
                dated is not None and (one.start or date.min) <= dated < (one.end or date.max) for one in times
            )
            if times and not is_dated and not requested - _PLAIN <= self._words[at]:
                continue
            alike = other.claims.version_key is not None and other.claims.version_key == document.claims.version_key
            if words <= self._words[at] if words else alike:
                found.append((len(self._words[at] - requested) - 100 * alike, at))
        found.sort()
        if not found or (len(found) > 1 and found[0][0] == found[1][0]):
            return None
        return self._documents[found[0][1]].id


def _read_date(
    source: str, title: str | None, fields: Mapping[str, Any], text: str, language: str | None, is_mail: bool
) -> tuple[date | None, DateOrigin | None]:
    for key in _DATE_KEYS:
        if (found := _parse_date(fields.get(key), language)) is not None:
            return found, "mail" if is_mail else "metadata"
    if not is_mail:
        for line in _DATED_LINE.finditer(text[:2_000]):
            if (found := _parse_date(line.group(), language)) is not None:
                return found, "line"
        for stamp in _STAMP.finditer(text[:2_000]):
            times = find_time_expressions(stamp["date"], language)
            if times and not _WORD.search(stamp["date"].replace(times[0].text, "", 1)):
                return times[0].start or times[0].end, "line"
    name = source.rpartition("/")[2]
    for part in (name, source):
        if (found := _read_name_date(part, language)) is not None:
            return found, "name"
    if (found := _parse_date(title, language)) is not None:
        return found, "title"
    return None, None


def _parse_date(value: Any, language: str | None) -> date | None:
    """The first day that a value names; None: it names none."""
    if isinstance(value, int) and 1900 <= value <= 2100 and not isinstance(value, bool):
        return date(value, 1, 1)
    if not isinstance(value, str) or not value.strip():
        return None
    try:
        return datetime.fromisoformat(value.strip()).date()
    except ValueError:
        starts = [one.start or one.end for one in find_time_expressions(value.strip(), language)]
        return next((start for start in starts if start is not None), None)


def _parse_last_day(value: Any, language: str | None) -> date | None:
    """The last day that a value names; None: it names none."""
    if not isinstance(value, str) or not value.strip():
        return None
    try:
        return datetime.fromisoformat(value.strip()).date()
    except ValueError:
        ends = [one.end for one in find_time_expressions(value.strip(), language) if one.end is not None]
        return date.fromordinal(max(ends).toordinal() - 1) if ends else None


def _read_name_date(name: str, language: str | None) -> date | None:
    """The first day of the last of the most exact dates in a name; None: it has none."""
    words = re.sub(r"[\W_]+", " ", name)
    spelled = find_time_expressions(words, language)
    dates = [(-(one.end - one.start).days, one.start) for one in spelled if one.start and one.end]
    for match in _NAME_DATE.finditer(name):
        day = match["day"] and int(match["day"])
        month = int(match["month"] or 1)
        # A day that the month does not have leaves the month.
        start = date(int(match["year"]), month, 1)
        if day and day <= monthrange(start.year, month)[1]:
            start = start.replace(day=day)
        dates.append((-1 if day else -31 if match["month"] else -366, start))
    return max(dates, key=lambda one: one[0], default=(0, None))[1]


def _list_named(fields: Mapping[str, Any], keys: Sequence[str]) -> Iterator[str]:
    for key in keys:
        value = fields.get(key)
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, str | int) and not isinstance(one, bool) and str(one).strip():
                yield str(one).strip()


def _read_status(fields: Mapping[str, Any], text: str) -> Standing | None:
    values = [value for key in _STATUS_KEYS if isinstance(value := fields.get(key), str)]
    if not values and (line := _STATUS_LINE.search(text[:2_000])) is not None:
        values = [line["status"]]
    for value in values:
        status = _DENIED_WORD.sub(" ", value.casefold())
        if _DRAFT.search(status):
            return "draft"
        if _RETIRED.search(status):
            return "retired"
    return None


def _build_key(title: str, language: str | None) -> str | None:
    plain = title.replace("_", " ")
    for time in find_time_expressions(plain, language):
        plain = plain.replace(time.text, " ")
    plain = _VERSION.sub(" ", _NAME_DATE.sub(" ", plain))
    words = [word for word in map(str.casefold, _WORD.findall(plain)) if word not in _BESIDE_TITLE]
    return " ".join(words) if any(not word.isdigit() for word in words) else None


def _name_stem(source: str) -> str:
    name = source.rpartition("/")[2]
    stem, dot, ending = name.rpartition(".")
    return stem if dot and stem and len(ending) <= 5 else name


def _split_words(text: str) -> set[str]:
    return {word.casefold().lstrip("0") or "0" for word in _WORD.findall(text)}
