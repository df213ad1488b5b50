"""Documents that follow a bucket and a WebDAV folder; servers of both run here."""

import asyncio
import hashlib
import itertools
import json
import os
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import partial
from pathlib import Path
from typing import IO, Any, Protocol
from uuid import uuid4

import asyncssh
import fsspec
import pytest
from cheroot import wsgi
from wsgidav.wsgidav_app import WsgiDAVApp

from engram.composition.container import Application
from engram.context.errors import InvalidRequestError
from engram.wings.importing.sources.file_system import FileSystem
from tests.support import state
from tests.support.command import Cli
from tests.support.processes import eventually
from tests.support.s3_server import open_bucket
from tests.wings.importing.test_learning_follows import assert_sound, passages, taught, teach

FILES = int(os.environ.get("ENGRAM_EVALUATION_SYNC_FILES", "15"))
CHANGED, RENAMED, DELETED = FILES // 15, max(2, FILES // 60), max(1, FILES // 100)
KILLS = int(os.environ.get("ENGRAM_EVALUATION_SYNC_KILLS", "2"))
SLOWEST_KILL_SECONDS = float(os.environ.get("ENGRAM_EVALUATION_SYNC_KILL_SECONDS", "2"))


@dataclass
class Store:
    """A store of files that the command reads by an address.

    Attributes:
        write: stores a file.
        rename: gives a file another path.
        remove: deletes a file.
        environment: what the command needs to know.
        reads: paths that were read; None: the server does not tell.
    """

    address: str
    write: Callable[[str, str], None]
    rename: Callable[[str, str], None]
    remove: Callable[[str], None]
    environment: dict[str, str] = field(default_factory=dict)
    reads: list[str] | None = None


@pytest.fixture
def bucket() -> Iterator[Store]:
    with open_bucket() as opened:
        bucket = opened.bucket

        def rename(before: str, after: str) -> None:
            bucket.Object(f"docs/{after}").copy_from(CopySource=f"{bucket.name}/docs/{before}")
            bucket.Object(f"docs/{before}").delete()

        yield Store(
            f"s3://{bucket.name}/docs",
            lambda path, text: bucket.put_object(Key=f"docs/{path}", Body=text.encode()) and None,
            rename,
            lambda path: bucket.Object(f"docs/{path}").delete() and None,
            dict(opened.environment),
        )


@pytest.fixture
def webdav(tmp_path: Path) -> Iterator[Store]:
    folder = tmp_path / "dav"
    folder.mkdir()
    users = {"user_mapping": {"*": {"ana": {"password": "secret"}}}}
    application = WsgiDAVApp(
        {"provider_mapping": {"/": str(folder)}, "simple_dc": users, "logging": {"enable": False}}
    )
    reads: list[str] = []

    def count(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] == "GET":
            reads.append(environ["PATH_INFO"].lstrip("/"))
        return application(environ, start_response)

    server = wsgi.Server(("127.0.0.1", 0), count)
    server.prepare()
    threading.Thread(target=server.serve, daemon=True).start()

    yield Store(f"webdav+http://ana:secret@127.0.0.1:{server.bind_addr[1]}/", *write_to(folder), reads=reads)
    server.stop()


@pytest.fixture
def sftp(tmp_path: Path) -> Iterator[Store]:
    folder = tmp_path / "sftp"
    folder.mkdir()
    key = asyncssh.generate_private_key("ssh-ed25519")
    loop = asyncio.new_event_loop()
    reads: list[str] = []

    class Everybody(asyncssh.SSHServer):
        def begin_auth(self, username: str) -> bool:
            return False

    class Counting(asyncssh.SFTPServer):
        def open(self, path: bytes, *how: Any) -> Any:
            reads.append(path.decode().lstrip("/"))
            return super().open(path, *how)

    async def serve() -> Any:
        return await asyncssh.listen(
            "127.0.0.1",
            0,
            server_factory=Everybody,
            server_host_keys=[key],
            sftp_factory=lambda channel: Counting(channel, chroot=bytes(folder)),
        )

    server = loop.run_until_complete(serve())
    port = server.get_port()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    hosts = tmp_path / "known_hosts"
    hosts.write_text(f"[127.0.0.1]:{port} {key.export_public_key().decode()}")
    yield Store(
        f"sftp://ana@127.0.0.1:{port}/",
        *write_to(folder),
        environment={"FSSPEC_SFTP": json.dumps({"known_hosts": str(hosts)})},
        reads=reads,
    )
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    server.close()
    loop.run_until_complete(server.wait_closed())
    loop.close()


def write_to(folder: Path) -> tuple[Callable[[str, str], None], Callable[[str, str], None], Callable[[str], None]]:
    """Functions that write, rename and remove files of a folder. Each change has a time of its own, an hour ago."""
    times = itertools.count(int(time.time()) - 3_600)

    def write(path: str, text: str) -> None:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
        os.utime(folder / path, (moment := next(times), moment))

    def rename(before: str, after: str) -> None:
        (folder / after).parent.mkdir(parents=True, exist_ok=True)
        (folder / before).rename(folder / after)

    return write, rename, lambda path: (folder / path).unlink()


@pytest.fixture(params=["bucket", "webdav", "sftp"])
def store(request: pytest.FixtureRequest) -> Store:
    filled: Store = request.getfixturevalue(request.param)
    for number in range(FILES):
        filled.write(name(number), text(number))
    return filled


@pytest.fixture
def collection() -> str:
    return f"store-{uuid4().hex[:8]}"


def name(number: int) -> str:
    return f"part{number % 5}/town{number}.txt"


def text(number: int, length: int = 7) -> str:
    return (
        f"Town number {number} lies on river number {number}. Its river is {length * number + length} miles long. "
        f"Its bridge number {number} is old. Its fair number {number} is in May."
    )


def sync(cli: Cli, store: Store, collection: str, *more: str, code: int = 0) -> dict[str, Any]:
    done = cli("sync", store.address, "-c", collection, "--json", *more, **store.environment)
    assert done.returncode == code, done.stderr
    report = json.loads(done.stdout)
    report.pop("jobs")
    return {key: value for key, value in report.items() if value}


def change(store: Store) -> tuple[list[str], list[str], list[str]]:
    """Change, rename and delete files; return the names of the changed, the new names, and those that are gone."""
    changed = [name(number) for number in range(CHANGED)]
    for number in range(CHANGED):
        store.write(name(number), text(number, 9))
    renamed = [f"moved/city{number}.txt" for number in range(CHANGED, CHANGED + RENAMED)]
    for number, after in enumerate(renamed, start=CHANGED):
        store.rename(name(number), after)
    deleted = [name(number) for number in range(FILES - DELETED, FILES)]
    for gone in deleted:
        store.remove(gone)
    return changed, renamed, deleted


class Running(Protocol):
    """A process that can be killed."""

    def kill(self) -> None: ...

    def wait(self, timeout: float | None = None) -> int: ...


def kill_runs(begin: Callable[[IO[bytes]], Running], output: Path, seed: int) -> None:
    """Begin a run again and again, and kill it each time at a random moment."""
    moments = random.Random(seed)
    with output.open("wb") as stream:
        for _ in range(KILLS):
            running = begin(stream)
            time.sleep(moments.uniform(0, SLOWEST_KILL_SECONDS))
            running.kill()
            running.wait(10)


def wait_for_jobs(application: Application, collection: str) -> None:
    eventually(lambda: all(row["finished_at"] for row in state.rows(application, collection, "job")), "idle")


def assert_equal(application: Application, collection: str, fresh: str) -> None:
    """Check that a collection has what one has that was filled at once, and is sound."""
    assert documents(application, collection) == documents(application, fresh)
    assert passages(application, collection).items() == passages(application, fresh).items()
    assert_sound(application, collection)


def documents(application: Application, collection: str) -> dict[str, tuple[str, str]]:
    rows = state.rows(application, collection, "document")
    return {row["source"]: (row["folder"], row["digest"]) for row in rows}


@pytest.mark.usefixtures("working")
def test_only_what_changed_is_read_and_learning_follows(
    cli: Cli, application: Application, store: Store, collection: str
) -> None:
    assert len(sync(cli, store, collection)["uploaded"]) == FILES
    assert sync(cli, store, collection) == {"files": FILES}
    held = [f"Its bridge number {number} is old." for number in range(CHANGED + RENAMED)]
    teach(application, collection, *held)
    if store.reads is not None:
        store.reads.clear()
    changed, renamed, deleted = change(store)
    report = sync(cli, store, collection)
    moved = [move["source"] for move in report.get("moved", [])]  # by SFTP a version does not tell what was renamed
    assert sorted([*report["uploaded"], *moved]) == sorted([*changed, *renamed])
    assert report["deleted"] == sorted(deleted)
    if store.reads is not None:
        assert sorted(store.reads) == sorted([*changed, *renamed])
    assert taught(application, collection) == sorted(held)
    assert len(passages(application, collection)) == FILES - DELETED
    assert_sound(application, collection)
    assert sync(cli, store, collection) == {"files": FILES - DELETED}
    folders = {folder for folder, _ in documents(application, collection).values()}
    assert folders == {store.address.replace(":secret", "").rstrip("/")}


@pytest.mark.usefixtures("working")
def test_a_killed_run_is_completed_by_the_next(
    cli: Cli, application: Application, store: Store, collection: str, tmp_path: Path
) -> None:
    sync(cli, store, collection)
    change(store)
    with pytest.MonkeyPatch.context() as patched:
        for key, value in store.environment.items():
            patched.setenv(key, value)
        run = partial(cli.begin, "sync", store.address, "-c", collection)
        kill_runs(lambda output: run(output=output), tmp_path / "killed", seed=5)
    wait_for_jobs(application, collection)
    sync(cli, store, collection)
    sync(cli, store, f"{collection}-fresh")
    assert_equal(application, collection, f"{collection}-fresh")


@pytest.mark.usefixtures("working")
@pytest.mark.parametrize("kind", ["webdav", "sftp"])
def test_a_change_without_another_size_and_time_is_read(
    cli: Cli, application: Application, collection: str, kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    store: Store = request.getfixturevalue(kind)
    now = int(time.time()) + 3_600  # as for a file of this second, whenever the command runs
    for length in (7, 9):
        store.write("town.txt", text(0, length))
        os.utime(tmp_path / kind.removeprefix("web") / "town.txt", (now, now))
        assert sync(cli, store, collection) == {"files": 1, "uploaded": ["town.txt"]}
    assert list(passages(application, collection).values()) == [text(0, 9)]
    assert sync(cli, store, collection) == {"files": 1}


@pytest.mark.usefixtures("working")
def test_an_empty_or_failing_listing_deletes_nothing(
    cli: Cli, application: Application, bucket: Store, collection: str
) -> None:
    for number in range(4):
        bucket.write(name(number), text(number))
    sync(cli, bucket, collection)
    for number in range(4):
        bucket.remove(name(number))
    for address in (bucket.address, bucket.address.replace("s3://b", "s3://c")):
        failure = cli.fails("sync", address, "-c", collection, **bucket.environment)
        assert f"{address} cannot be listed: nothing is there" in failure
    bucket.write(name(0), text(0))
    done = cli("sync", bucket.address, "-c", collection)
    assert (done.returncode, "nothing is deleted: 3 of 4 documents" in done.stderr) == (1, True)
    assert len(documents(application, collection)) == 4
    assert len(sync(cli, bucket, collection, "--allow-mass-deletion")["deleted"]) == 3


def test_a_host_of_an_unknown_key_is_not_read(cli: Cli, sftp: Store) -> None:
    failure = cli.fails("sync", sftp.address, HOME=str(cli.folder))
    assert "Host key is not trusted" in failure
    assert sftp.reads == []


@pytest.mark.usefixtures("working")
def test_an_address_is_read_again_after_a_time(cli: Cli, bucket: Store, collection: str, tmp_path: Path) -> None:
    bucket.write("a.txt", text(1))
    output = tmp_path / "output"
    with output.open("wb") as log:
        following = cli.begin("sync", bucket.address, "-c", collection, "--every", "1s", output=log)
        try:
            eventually(lambda: "1 file: 1 uploaded" in output.read_text(), "first run")
            bucket.write("b.txt", text(2))
            eventually(lambda: "2 files: 1 uploaded" in output.read_text(), "second run")
        finally:
            following.terminate()
            following.wait(10)
    assert "--every is a number and a unit" in cli.fails("sync", bucket.address, "--every", "soon")
    assert "--watch follows a folder of this machine" in cli.fails("sync", bucket.address, "--watch")


@pytest.fixture
def memory() -> Iterator[Any]:
    system = fsspec.filesystem("memory")
    yield system
    system.store.clear()
    system.pseudo_dirs[:] = [""]


def list_memory(memory: Any, files: dict[str, bytes]) -> tuple[FileSystem, Any]:
    for path, data in files.items():
        memory.pipe_file(f"/handbook/{path}", data)
    source = FileSystem("memory://handbook")
    return source, source.list_files("docs", tuple)


def test_a_listing_leaves_out_what_makes_no_document(memory: Any) -> None:
    files = {"a.md": b"A", "deep/b.txt": b"B", "c.gif": b"C", ".hidden/d.txt": b"D", "e.txt": b"", "~$f.docx": b"F"}
    source, listed = list_memory(memory, files)
    assert [(file.name, file.folder) for file in listed.sources] == [
        ("docs/a.md", "memory://handbook"),
        ("docs/deep/b.txt", "memory://handbook"),
    ]
    assert (listed.others, listed.empty) == (("docs/c.gif",), ("docs/e.txt",))
    assert listed.hidden == ("docs/.hidden/",)
    content = source.read(listed.sources[1], 100)
    assert (content.data, content.kind, content.digest) == (b"B", ".txt", None)
    assert source.find_digest(listed.sources[1]) == hashlib.sha256(b"B").hexdigest()


def test_a_folder_that_cannot_be_listed_is_named(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    source, _ = list_memory(memory, {"a.md": b"A", "deep/b.txt": b"B"})
    listing = type(memory).ls

    def refuse(system: Any, path: str, **how: Any) -> Any:
        if path.endswith("deep"):
            raise ValueError("no")
        return listing(system, path, **how)

    monkeypatch.setattr(type(memory), "ls", refuse)
    listed = source.list_files("", tuple)
    assert (listed.unreadable, [file.name for file in listed.sources]) == (("/deep",), ["a.md"])


def test_a_lost_connection_is_made_again(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    source, listed = list_memory(memory, {"a.md": b"A"})
    lost: list[Any] = []
    listing = type(memory).ls

    def lose(system: Any, path: str, **how: Any) -> Any:
        lost.append(system)
        if system is lost[0]:
            raise ConnectionError("lost")
        return listing(system, path, **how)

    monkeypatch.setattr(type(memory), "ls", lose)
    with pytest.raises(InvalidRequestError, match="cannot be listed: lost"):
        source.list_files("docs", tuple)
    assert source.list_files("docs", tuple) == listed


@pytest.mark.parametrize(
    ("entry", "is_kept"),
    [
        ({"mtime": -1.0}, False),
        ({"mtime": 2.5}, True),
        ({"modified": 0}, False),
        ({"modified": 60}, True),
        ({"updated": "iso 1"}, False),
        ({"updated": "iso 60"}, True),
        ({"last_modified": "http 1"}, False),
        ({"last_modified": "http 60"}, True),
        ({"mtime": "some day"}, False),
        ({"etag": "a", "modified": 60}, True),
        ({"ETag": "a", "LastModified": 0}, True),
    ],
)
def test_a_file_that_just_changed_is_known_by_its_content(
    memory: Any, monkeypatch: pytest.MonkeyPatch, entry: dict[str, Any], is_kept: bool
) -> None:
    moment = datetime(2026, 11, 30, 8, tzinfo=UTC)
    monkeypatch.setattr(time, "time", moment.timestamp)
    entry = {name: write_time(moment, value) for name, value in entry.items()}
    found = [{"name": "/handbook/docs/a.md", "type": "file", "size": 1, **entry}]
    monkeypatch.setattr(type(memory), "ls", lambda *_arguments, **_how: found)
    memory.pipe_file("/handbook/docs/a.md", b"A")
    source = FileSystem("memory://handbook/docs")
    (file,) = source.list_files("", tuple).sources
    assert (source.find_digest(file) == hashlib.sha256(b"A").hexdigest()) is not is_kept
    assert source.read(file, 100).digest == (source.find_digest(file) if is_kept else None)


def write_time(moment: datetime, value: Any) -> Any:
    """A time so many seconds before a moment, as a file system writes it: a float, a datetime or a text."""
    kind, _, seconds = value.partition(" ") if isinstance(value, str) else ("", "", value)
    if not str(seconds).lstrip("-").replace(".", "").isdigit():
        return value
    then = moment - timedelta(seconds=float(seconds))
    if kind:
        return then.isoformat() if kind == "iso" else format_datetime(then, usegmt=True)
    return then.timestamp() if isinstance(value, float) else then


def test_rules_of_readers_are_read_at_the_address(memory: Any) -> None:
    files = {
        "a.md": b"A",
        "pay/b.md": b"B",
        ".engram-readers": b"*: everyone\n",
        "pay/.engram-readers": b"*: group:hr",
    }
    source, listed = list_memory(memory, files)
    rules = source.read_rules(listed.sources)
    found = {file.name: rules.find(file.path, None) for file in listed.sources}
    assert [found["docs/a.md"].readers, found["docs/pay/b.md"].readers] == [None, ("group:hr",)]
    memory.pipe_file("/handbook/.engram-readers", b"*: everyone\nwages/*: group:hr\n")
    with pytest.raises(InvalidRequestError, match=r"line 2: 'wages/\*' matches no file"):
        source.read_rules(source.list_files("", tuple).sources)
    memory.pipe_file("/handbook/.engram-readers", b"#" * ((1 << 20) + 1))
    with pytest.raises(InvalidRequestError, match="larger than 1 MiB"):
        source.read_rules(source.list_files("", tuple).sources)
    memory.pipe_file("/handbook/pay/.engram-readers.txt", b"*: group:hr")
    with pytest.raises(InvalidRequestError, match="Rename it"):
        source.list_files("", tuple)


@pytest.mark.parametrize("address", ["file:///etc", "nothing://at/all"])
def test_an_address_of_no_known_kind_is_refused(address: str) -> None:
    with pytest.raises(InvalidRequestError):
        FileSystem(address)
