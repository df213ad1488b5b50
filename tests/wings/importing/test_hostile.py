"""Files that are damaged, locked or made to harm cost one line each."""

import io
import json
import os
import re
import select
import signal
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

import openpyxl
import pytest

from engram.context.errors import AbandonedError, InvalidRequestError
from engram.wings.importing.conversion.conversion_template import ForkedProcess, close_template, receive, send
from engram.wings.importing.conversion.converter import Converter
from engram.wings.importing.conversion.documents import UnreadableError
from engram.wings.importing.conversion.folder import list_files
from engram.wings.importing.conversion.formats import KINDS, convert
from engram.wings.importing.conversion.import_limits import MIB, ConversionLimits
from engram.wings.importing.services.document_conversion import DocumentConversion
from tests.support.processes import eventually
from tests.wings.importing.office_files import LOCK_FILE

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)
LIMITS = ConversionLimits()


@pytest.fixture(scope="module")
def converter() -> Iterator[Converter]:
    with Converter(LIMITS) as started:
        yield started


def build_zip(*members: tuple[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return file.getvalue()


OASIS = "urn:oasis:names:tc:opendocument:xmlns"
REPEATED = f"""<o:document-content xmlns:o="{OASIS}:office:1.0"
xmlns:t="{OASIS}:table:1.0" xmlns:x="{OASIS}:text:1.0">
<o:body><o:spreadsheet><t:table t:name="S"><t:table-row t:number-rows-repeated="2000000">
<t:table-cell t:number-columns-repeated="16384"><x:p>1</x:p></t:table-cell></t:table-row></t:table></o:spreadsheet>
</o:body></o:document-content>"""
CASES = [
    ("plain.docx", b"not a zip", "not what its name says"),
    ("other.docx", build_zip(("a.txt", b"x")), "cannot be read as DOCX"),
    ("other.pptx", build_zip(("a.txt", b"x")), "cannot be read as PPTX"),
    ("other.xlsx", build_zip(("a.txt", b"x")), "cannot be read as XLSX"),
    ("locked.docx", OLE, "password"),
    ("locked.xlsx", OLE, "password"),
    ("repeated.ods", build_zip(("content.xml", REPEATED.encode())), "more than 1,000,000 cells"),
    ("deep.html", b"<div>" * 100_000 + b"x", "nests more than"),
    ("deep.json", b"[" * 100_000 + b"]" * 100_000, "nests more than"),
    ("level.json", b"[" * 60 + b"1" + b"]" * 60, "nests more than 50 levels"),
    ("broken.json", b'{"a": ', "no JSON"),
    ("blank.txt", b" \n\t ", "empty"),
    ("nul.txt", b"a\x00b\x00\x00\x00c", "no text"),
    ("noise.eml", b"\x00\x01\x02", "no headers"),
    ("cut.pdf", b"%PDF-1.7\n1 0 obj\n<<", "no PDF|cannot be read"),
    ("what.xyz", b"text", "none of the kinds"),
]


@pytest.mark.parametrize(("name", "data", "reason"), CASES, ids=[case[0] for case in CASES])
def test_a_hostile_file_is_one_line(converter: Converter, name: str, data: bytes, reason: str) -> None:
    with pytest.raises(UnreadableError, match=reason) as caught:
        converter.convert(name, data)
    assert caught.value.detail.startswith(name)
    assert "\n" not in caught.value.detail


def test_a_small_file_that_unpacks_to_a_large_one_is_one_line(converter: Converter) -> None:
    bomb = build_zip(("word/document.xml", bytes(257 * MIB)))
    test_a_hostile_file_is_one_line(converter, "bomb.docx", bomb, "unpacks to more than 256 MiB")


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_file_of_any_kind_is_one_line(kind: str) -> None:
    with pytest.raises(UnreadableError, match="is empty"):
        convert(f"a{kind}", b"")


@pytest.mark.parametrize("kind", KINDS)
def test_noise_of_any_kind_never_breaks_the_converter(converter: Converter, kind: str) -> None:
    with pytest.raises(UnreadableError):
        converter.convert(f"a{kind}", bytes(range(256)) * 40)
    assert converter.convert("a.md", b"Still there.").passages[0].text == "Still there."


def workbook(cells: dict[str, object]) -> bytes:
    book, file = openpyxl.Workbook(), io.BytesIO()
    for place, value in cells.items():
        book.active[place] = value
    book.save(file)
    return file.getvalue()


def test_a_sheet_whose_only_cell_is_the_last_one_is_read() -> None:
    (made,) = convert("far.xlsx", workbook({"XFD1048576": "far away"})).passages
    assert made.sentences == ("Sheet", "far away")


def test_cells_pages_and_files_are_bounded() -> None:
    wide = workbook({f"A{row}": row for row in range(1, 30)})
    with pytest.raises(UnreadableError, match="more than 20 cells"):
        convert("a.xlsx", wide, limits=replace(LIMITS, cells=20))
    pages = (Path(__file__).parent / "files/handbook.pdf").read_bytes()
    with pytest.raises(UnreadableError, match="more than 2 pages"):
        convert("a.pdf", pages, limits=replace(LIMITS, pages=2))
    with pytest.raises(UnreadableError, match="larger than 0 MiB"):
        convert("a.txt", b"too long", limits=replace(LIMITS, file_bytes=3))


def test_a_conversion_ends_once_its_sender_left() -> None:
    table = b"a,b\n" + b"1,2\n" * 2_000_000
    service = DocumentConversion(max_bytes=len(table), timeout_seconds=60.0)
    left_at = time.monotonic() + 0.5
    with pytest.raises(AbandonedError, match="closed its connection"):
        service.convert(
            "long.csv",
            table,
            kind=".csv",
            size=1_000,
            overlap=0,
            client_left=lambda: time.monotonic() >= left_at,
        )
    assert time.monotonic() - left_at < 5.0


def test_a_file_that_takes_too_long_or_too_much_is_one_line_and_the_next_is_read() -> None:
    table = b"a,b\n" + b"1,2\n" * 400_000
    with Converter(replace(LIMITS, seconds=0.05)) as hasty, pytest.raises(UnreadableError, match="took longer"):
        hasty.convert("long.csv", table)
    with Converter(replace(LIMITS, memory_bytes=512 * MIB, seconds=60)) as small:
        # A library that runs out of memory may also stand still, until the time is over.
        with pytest.raises(UnreadableError, match=r"memory|took longer"):
            small.convert("large.csv", table)
        assert small.convert("a.md", b"Still there.").passages[0].text == "Still there."


@pytest.fixture
def endless(converter: Converter) -> Iterator[tuple[ForkedProcess, int, int]]:
    """A process that converts a file for long, its number, and that of its template."""
    converter.close()
    process = ForkedProcess.start()
    template = find_template()
    limits = asdict(replace(LIMITS, seconds=0.0, cells=10**9))
    header = {"source": "a.csv", "kind": ".csv", "size": 1_000, "overlap": 0, "limits": limits}
    for part in (json.dumps(header).encode(), b"a,b\n" + b"1,2\n" * 5_000_000):
        send(process.stream, part)
    (number,) = list_child_processes(template)
    process.stream.settimeout(30.0)
    yield process, int(number), int(template)
    process.end()


def wait_for_end(process: ForkedProcess) -> None:
    with suppress(ConnectionResetError):  # it had not read all that was sent
        assert receive(process.stream) is None


def test_a_conversion_ends_with_the_process_that_asked_for_it(endless: tuple[ForkedProcess, int, int]) -> None:
    process, _, _ = endless
    close_template()  # as when the service is killed
    wait_for_end(process)


def test_a_conversion_ends_in_time_without_its_template(endless: tuple[ForkedProcess, int, int]) -> None:
    process, _, template = endless
    os.kill(template, signal.SIGKILL)
    wait_for_end(process)
    with Converter(LIMITS) as next_one:
        assert next_one.convert("a.md", b"Still there.").passages[0].text == "Still there."


def test_an_order_that_a_template_leaves_undone_goes_to_the_next(converter: Converter) -> None:
    converter.close()
    converter.convert("a.md", b"Text.")
    converter.close()
    template = int(find_template())
    os.kill(template, signal.SIGSTOP)  # so that it still seems to be there
    threading.Timer(0.5, os.kill, (template, signal.SIGKILL)).start()
    assert converter.convert("a.md", b"Still there.").passages[0].text == "Still there."


def test_a_process_that_converts_has_its_bounds_and_nothing_of_its_template(
    endless: tuple[ForkedProcess, int, int],
) -> None:
    _, number, template = endless
    assert os.getsid(number) == number
    assert sorted(os.listdir(f"/proc/{number}/fd")) == ["0", "1", "2", "3"]
    for bound, most in (("file size", 0), ("core file size", 0), ("address space", LIMITS.memory_bytes)):
        line = re.compile(rf"^Max {bound} +{most} +{most} ", re.MULTILINE)
        eventually(lambda line=line: line.search(Path(f"/proc/{number}/limits").read_text()), bound)
    assert len(os.listdir(f"/proc/{template}/task")) == 1, "a fork would not have its other threads"


def test_programs_that_read_for_the_converter_end_with_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "alive")
    program = tmp_path / "tesseract"
    program.write_text(
        "#!/bin/sh\n[ \"$1\" = --list-langs ] && printf 'List\\neng\\n' && exit\n"
        f"exec > {tmp_path}/alive\necho started\nexec sleep 30\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    alive = os.open(tmp_path / "alive", os.O_RDONLY | os.O_NONBLOCK)

    def has_changed(timeout: float = 0.0) -> bool:
        return bool(select.select([alive], [], [], timeout)[0])

    with Converter(LIMITS, is_abandoned=has_changed) as started, pytest.raises(UnreadableError):
        started.convert("a.png", b"\x89PNG\r\n\x1a\n")
    assert os.read(alive, 100) == b"started\n"
    assert has_changed(timeout=5.0), "it runs on"
    assert os.read(alive, 100) == b""
    os.close(alive)


def list_child_processes(parent: str) -> set[str]:
    return {pid for file in Path(f"/proc/{parent}/task").glob("*/children") for pid in file.read_text().split()}


def find_template() -> str:
    (template,) = (
        pid
        for pid in list_child_processes("self")
        if b"conversion_process" in Path(f"/proc/{pid}/cmdline").read_bytes()
    )
    return template


def test_the_converter_does_not_see_the_environment(converter: Converter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://secret")
    converter.close()
    close_template()
    converter.convert("a.md", b"Text.")
    (process,) = list_child_processes(find_template())
    environment = Path(f"/proc/{process}/environ").read_bytes()
    assert b"DATABASE_URL" not in environment


def test_each_document_has_a_process_of_its_own(converter: Converter) -> None:
    service = DocumentConversion(max_bytes=1_000, timeout_seconds=60.0)
    converter.close()
    for _ in range(2):
        service.convert("a.md", b"Text.", kind=".md", size=1_000, overlap=0)
        assert not list_child_processes(find_template())


def test_links_that_leave_the_folder_are_not_followed(tmp_path: Path) -> None:
    folder, outside = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    outside.mkdir()
    (outside / "secret.txt").write_text("Secret.")
    (folder / "a.txt").write_text("Here.")
    (folder / "same.txt").symlink_to(folder / "a.txt")
    (folder / "away.txt").symlink_to(outside / "secret.txt")
    (folder / "gone.txt").symlink_to(outside / "nothing.txt")
    (folder / "folder").symlink_to(outside)
    listed = list_files([folder])
    assert [source.name for source in listed.sources] == ["a.txt", "same.txt"]
    assert listed.outside == ("away.txt", "folder", "gone.txt")
    for name in (".b.txt", ".env", ".git/c.txt"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("Hidden.")
    assert list_files([folder]).hidden == (".b.txt", ".git/")


def test_files_that_office_makes_beside_an_open_one_are_left_alone(tmp_path: Path) -> None:
    for name in ("a.docx", "~$a.docx", ".~lock.a.docx#", "~notes.txt"):
        (tmp_path / name).write_bytes(LOCK_FILE)
    assert [source.name for source in list_files([tmp_path]).sources] == ["a.docx", "~notes.txt"]
    assert list_files([tmp_path]).hidden == ()
    named = list_files([tmp_path / "a.docx", tmp_path / "~$a.docx"])
    assert ([source.name for source in named.sources], named.locks) == (["a.docx"], ("~$a.docx",))
    with pytest.raises(UnreadableError, match="only marks a file that Office has open"):
        convert("reports/~$a.docx", LOCK_FILE)


def test_odd_names_are_written_so_that_anything_can_take_them(tmp_path: Path) -> None:
    for name in ("a b.txt", "Zürich 日本.md", "line\nbreak.txt", "bell\x07.txt"):
        (tmp_path / name).write_text("Text.")
    (tmp_path / b"caf\xe9.txt".decode("utf-8", "surrogateescape")).write_text("Text.")
    names = {source.name for source in list_files([tmp_path]).sources}
    assert names == {"a b.txt", "Zürich 日本.md", "line%0Abreak.txt", "bell%07.txt", "caf%E9.txt"}


def test_unsupported_or_missing_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.gif").write_bytes(b"x")
    with pytest.raises(InvalidRequestError, match="none of the kinds"):
        list_files([tmp_path / "a.gif"])
    with pytest.raises(InvalidRequestError, match="not there"):
        list_files([tmp_path / "b.txt"])
