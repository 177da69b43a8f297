"""Fetching, against servers on loopback that answer as the sources do, and as they fail; no test waits."""

import gzip
import json
import logging
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import pytest

from abstag.errors import DataError
from abstag.sources import Fetched, collect
from abstag.sources._collect import Page, Source
from abstag.sources._http import _retry_after
from tests.conftest import Go


class Answer(NamedTuple):
    """What a server says; ``cut`` breaks the connection in the middle of the body, ``slow`` waits before it."""

    body: bytes | str
    status: int = 200
    headers: Mapping[str, str] = {}
    cut: bool = False
    slow: float = 0.0


class Asked(NamedTuple):
    """A request as the server saw it."""

    path: str
    parameters: dict[str, str]
    headers: dict[str, str]


@dataclass
class Server:
    """A server on loopback, its address, and what it was asked."""

    url: str
    asked: list[Asked] = field(default_factory=list)


Respond = Callable[[Asked], Answer]
Serve = Callable[[Respond], Server]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Start a server that answers with a function of the request."""
    monkeypatch.setenv("no_proxy", "*")
    servers: list[ThreadingHTTPServer] = []

    def start(respond: Respond) -> Server:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                split = urlsplit(self.path)
                asked = Asked(split.path, dict(parse_qsl(split.query)), dict(self.headers))
                server.asked.append(asked)
                answer = respond(asked)
                body = answer.body.encode() if isinstance(answer.body, str) else answer.body
                time.sleep(answer.slow)
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(body[: len(body) // 2] if answer.cut else body)

            do_HEAD = do_GET  # noqa: N815

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                """Say nothing."""

            def handle(self) -> None:
                with suppress(ConnectionError):  # the client had not the patience
                    super().handle()

        running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(running)
        server = Server(f"http://127.0.0.1:{running.server_address[1]}")
        threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return server

    yield start
    for running in servers:
        running.shutdown()
        running.server_close()


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that would have been waited."""
    waited: list[float] = []
    monkeypatch.setattr("abstag.sources._http.sleep", waited.append)
    return waited


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


# OpenReview


def note(number: int) -> dict[str, Any]:
    content = {
        "title": {"value": f"Otters on ladder {number}"},
        "abstract": {"value": f"We ask how otter number {number} climbs a ladder of wet wood,\nand why — \U0001f9a6."},
        "venue": {"value": "Otter 2024 poster"},
    }
    return {"id": f"note{number:03d}", "forum": f"note{number:03d}", "cdate": 1_700_000_000_000, "content": content}


def said(value: Any) -> Answer:
    return Answer(json.dumps(value), headers={"Content-Type": "application/json"})


NOT_FOUND = Answer('{"name": "NotFoundError", "message": "The Invitation was not found", "status": 404}', 404)


def openreview(size: int, *, limit: int = 2, venue: str = "otter.org/2024/Conference") -> Respond:
    """Return the answers of the second version with ``size`` notes of one venue."""

    def respond(asked: Asked) -> Answer:
        asks = asked.parameters
        if asked.path == "/groups":
            members = [venue, "otter.org/2023/Conference", "ladder.net/2024/Workshop/Wet_Wood"]
            return said({"groups": [{"id": "venues", "members": members}]})
        if asks.get("content.venueid") != venue:
            return NOT_FOUND if "invitation" in asks else said({"notes": [], "count": 0})
        notes = [note(number) for number in range(size) if note(number)["id"] > asks.get("after", "")]
        return said({"notes": notes[:limit], "count": size})

    return respond


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two notes a page."""
    monkeypatch.setattr("abstag.sources.openreview._LIMIT", 2)


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("size", [1, 2, 5])
def test_notes_of_a_venue_come_whole_and_are_ingested(
    serve: Serve, go: Go, tmp_path: Path, waits: list[float], size: int
) -> None:
    server, out = serve(openreview(size)), tmp_path / "new" / "otters.jsonl"
    ran = go("fetch", "openreview", "otter.org/2024/Conference/", "-o", out, "--url", server.url, code=0)
    pages = size // 2 + 1
    assert ran.out == f"fetched {size}, 0 duplicates, 0 without content, {pages} pages, expected {size}\n"
    assert lines(out) == [note(number) for number in range(size)]
    assert [path.name for path in out.parent.iterdir()] == [out.name]
    assert {asked.path for asked in server.asked} == {"/notes"}
    assert [asked.parameters.get("after") for asked in server.asked] == [None, "note001", "note003"][:pages]
    assert server.asked[0].headers["User-Agent"].startswith("abstag/")
    assert waits[0] == 0
    assert all(0.5 < wait <= 1 for wait in waits[1:])  # the pause, and no other wait
    manifest = json.loads(go("ingest", out, "-o", tmp_path / "corpus", "--json", code=0).out)
    assert (manifest["records"], manifest["rejects"]) == (size, 0)


def test_the_first_version_is_asked_by_invitation(serve: Serve, go: Go, tmp_path: Path) -> None:
    def respond(asked: Asked) -> Answer:
        if asked.parameters.get("invitation") == "otter.org/2019/Conference/-/Submission":
            old = {"id": "a1", "content": {"title": "Old otters", "abstract": "Six words about an old otter."}}
            return said({"notes": [old]})
        return NOT_FOUND if "invitation" in asked.parameters else said({"notes": []})

    server, out = serve(respond), tmp_path / "old.jsonl"
    go("fetch", "openreview", "otter.org/2019/Conference", "-o", out, "--url", server.url, code=0)
    assert [paper["id"] for paper in lines(out)] == ["a1"]
    assert len(server.asked) == 3
    again = go(
        "fetch", "openreview", "otter.org/2019/Conference/-/Submission", "-o", out, "--force", "--url", server.url
    )
    assert again.code == 0
    assert len(server.asked) == 4


def test_an_unknown_venue_is_told_with_near_names(serve: Serve, go: Go, tmp_path: Path) -> None:
    server = serve(openreview(3))
    ran = go("fetch", "openreview", "Oter.org/2024/Conferense", "-o", tmp_path / "x", "--url", server.url, code=1)
    assert "near names: otter.org/2024/Conference, otter.org/2023/Conference" in ran.err
    assert "Wet_Wood" not in ran.err
    assert not list(tmp_path.iterdir())
    empty = serve(lambda asked: said({"notes": []}) if asked.path == "/notes" else NOT_FOUND)
    ran = go("fetch", "openreview", "a/b", "-o", tmp_path / "x", "--url", empty.url, code=1)
    assert "no public notes of this venue; write it as in the address of its page" in ran.err


@pytest.mark.usefixtures("small_pages")
def test_a_repeated_page_is_written_once_and_one_without_end_is_an_error(
    serve: Serve, go: Go, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shifted = {None: [0, 1], "note001": [1, 2], "note002": [3]}  # a note that came meanwhile pushes one on

    def respond(asked: Asked) -> Answer:
        return said({"notes": [note(number) for number in shifted[asked.parameters.get("after")]], "count": 9})

    server, out = serve(respond), tmp_path / "x.jsonl"
    with caplog.at_level(logging.WARNING):
        ran = go("fetch", "openreview", "a/b", "-o", out, "--url", server.url, code=0)
    assert ran.out.startswith("fetched 4, 1 duplicates, 0 without content, 3 pages, expected 9")
    assert "expected 9; the source may have changed meanwhile" in caplog.text
    assert [paper["id"] for paper in lines(out)] == ["note000", "note001", "note002", "note003"]
    endless = serve(lambda asked: said({"notes": [note(0), note(1)]}))
    ran = go("fetch", "openreview", "a/b", "-o", tmp_path / "y.jsonl", "--url", endless.url, code=1)
    assert "the same page for ever" in ran.err
    assert not (tmp_path / "y.jsonl").exists()


# Failures that pass, and failures that do not


FAILURES = {
    "500": Answer("<html>broken</html>", 500),
    "429": Answer("", 429, {"Retry-After": "17"}),
    "503 until a day long past": Answer("", 503, {"Retry-After": "Sun, 06 Nov 1994 08:49:37 GMT"}),
    "cut": Answer(json.dumps({"notes": [note(0)]}), cut=True),
    "cut gzip": Answer(gzip.compress(b"{}")[:10], headers={"Content-Encoding": "gzip"}),
    "slow": Answer("{}", slow=0.5),
    "html": Answer("<!DOCTYPE html><p>Please log in to the network", headers={"Content-Type": "text/html"}),
    "other JSON": said({"message": "hello"}),
    "deep": Answer("[" * 100_000),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_what_may_pass_is_tried_again(
    serve: Serve, go: Go, tmp_path: Path, waits: list[float], monkeypatch: pytest.MonkeyPatch, failure: str
) -> None:
    monkeypatch.setattr("abstag.sources._http._TIMEOUT", 0.2)
    server = serve(lambda asked: FAILURES[failure] if len(server.asked) < 3 else openreview(1)(asked))
    ran = go("fetch", "openreview", "otter.org/2024/Conference", "-o", tmp_path / "x", "--url", server.url, code=0)
    assert ran.out.startswith("fetched 1,")
    assert len(server.asked) == 3
    backoff = [wait for wait in waits if wait > 1]
    low = [17, 17] if failure == "429" else [2, 4]
    assert all(least <= wait <= max(17, least * 1.5) for least, wait in zip(low, backoff, strict=True))
    assert backoff[0] != 2  # jitter: with a wait that is not the server's it is never just the power of two


@pytest.mark.parametrize(
    ("answer", "tries", "told"),
    [
        (Answer("", 503), 6, "gave up after 6 tries: the server answers 503; check the network"),
        (Answer("<html>", 200), 6, "the answer is no JSON: '<html>'"),
        (Answer("", 429, {"Retry-After": "86400"}), 1, "answers 429, and asks for a pause of 86400 s; run the same"),
        (Answer('{"message": "Forbidden"}', 403), 1, 'answers 403: {"message": "Forbidden"}; the server refuses'),
        (Answer("<html>for browsers</html>", 401), 1, "the server answers 401; this needs an account"),
    ],
)
def test_what_does_not_pass_is_one_clear_error(
    serve: Serve, go: Go, tmp_path: Path, answer: Answer, tries: int, told: str
) -> None:
    server = serve(lambda asked: answer)
    ran = go("fetch", "openreview", "a/-/Submission", "-o", tmp_path / "x", "--url", server.url, code=1)
    assert told in ran.err
    assert "Traceback" not in ran.err
    assert len(server.asked) == tries
    assert not list(tmp_path.iterdir())


def test_no_network_is_one_clear_error(go: Go, tmp_path: Path, waits: list[float], monkeypatch: Any) -> None:
    monkeypatch.setenv("no_proxy", "*")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    ran = go("fetch", "arxiv", "cat:cs.LG", "-o", tmp_path / "x", "--url", url, code=1)
    assert re.search(r"gave up after 6 tries: the connection failed: .*refused; check the network", ran.err)
    assert sum(waits) < 150
    assert not list(tmp_path.iterdir())


def test_a_packed_answer_is_unpacked(serve: Serve, go: Go, tmp_path: Path) -> None:
    body = gzip.compress(json.dumps({"notes": [note(0)]}).encode())
    server = serve(lambda asked: Answer(body, headers={"Content-Encoding": "gzip"}))
    go("fetch", "openreview", "a/b", "-o", tmp_path / "x", "--url", server.url, code=0)


@pytest.mark.parametrize(
    ("value", "seconds"), [(None, 0), ("12", 12), ("soon", 0), ("Sun, 06 Nov 1994 08:49:37 GMT", 0), ("-3", 0)]
)
def test_retry_after(value: str | None, seconds: float) -> None:
    assert _retry_after(value) == seconds
    assert 3e9 < _retry_after("Fri, 31 Dec 2199 23:59:59 GMT") < 9e9


# Going on


def command(out: Path, server: Server, *more: str) -> list[str]:
    return ["fetch", "openreview", "otter.org/2024/Conference", "-o", str(out), "--url", server.url, *more]


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("how", ["refused", "interrupted"])
def test_a_fetch_that_was_cut_off_goes_on(
    serve: Serve, go: Go, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """What was left of a page half written is cut off; pages that stand are not asked for again."""
    broken = [True]
    server = serve(lambda asked: Answer("", 403) if broken[0] and len(server.asked) >= 3 else openreview(7)(asked))
    out, part = tmp_path / "x.jsonl", tmp_path / "x.jsonl.part"
    if how == "interrupted":
        broken[0] = False
        stop = Interrupting(after=3)
        monkeypatch.setattr("abstag.sources._http.sleep", stop)
        assert go(*command(out, server)).code == 130
        monkeypatch.setattr("abstag.sources._http.sleep", lambda seconds: None)
    else:
        assert "answers 403" in go(*command(out, server), code=1).err
    asked = len(server.asked)
    assert not out.exists()
    assert len(lines(part)) == 4
    with part.open("ab") as stream:
        stream.write(b'{"id": "note004", "content": {"ti')
    broken[0] = False
    ran = go(*command(out, server), code=0)
    assert ran.out.startswith("fetched 7, 0 duplicates, 0 without content, 4 pages, expected 7")
    assert lines(out) == [note(number) for number in range(7)]
    assert server.asked[asked].parameters["after"] == "note003"
    assert [path.name for path in tmp_path.iterdir()] == ["x.jsonl"]


class Interrupting:
    """A sleep in which the user loses patience."""

    def __init__(self, *, after: int) -> None:
        self.left = after

    def __call__(self, seconds: float) -> None:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


def pages_of(*pages: Page, fail: bool = False) -> Source:
    def pages_from(cursor: Any) -> Iterator[Page]:
        yield from pages[cursor or 0 :]
        if fail:
            raise DataError("broken")

    return Source({"source": "test"}, pages_from)


FIRST, SECOND = Page([{"id": 1}, {"id": 2}], 1, 3), Page([{"id": 2}, {"id": 3}], None, 4, 1)


def test_what_is_left_is_gone_on_with_for_the_same_query_only(tmp_path: Path) -> None:
    out, part, state = (tmp_path / name for name in ("x", "x.part", "x.part.json"))
    with pytest.raises(DataError, match="broken"):
        collect(pages_of(FIRST, fail=True), out)
    left = state.read_text()
    other = pages_of(SECOND)._replace(query={"source": "other"})
    with pytest.raises(Exception, match=r"x\.part\.json: is of another fetch: .*--restart"):
        collect(other, out)
    for damaged in ("{", "[]", "{}", left.replace('"size": 20', '"size": 99'), left.replace('"fetched"', '"f"')):
        state.write_text(damaged)
        with pytest.raises(Exception, match=r"x\.part\.json: (is damaged|tells of more).*--restart"):
            collect(pages_of(FIRST, SECOND), out)
    state.write_text(left)
    part.write_text('["id", 1]\n{"id": 2}\n')
    with pytest.raises(Exception, match="tells of something else"):
        collect(pages_of(FIRST, SECOND), out)
    assert collect(pages_of(FIRST, SECOND), out, restart=True) == Fetched(3, 1, 1, 2, 3)
    assert out.read_text() == '{"id": 1}\n{"id": 2}\n{"id": 3}\n'
    assert list(tmp_path.iterdir()) == [out]


def test_what_has_no_name_is_kept_and_what_json_has_not_is_null(tmp_path: Path) -> None:
    entries: list[dict[str, Any]] = [{"id": None, "x": float("nan")}, {"id": ""}, {"x": "\ud800"}, {"x": "\u2028"}]
    assert collect(pages_of(Page(entries, None)), tmp_path / "x").fetched == 4
    assert (tmp_path / "x").read_bytes().decode().split("\n")[0] == '{"id": null, "x": null}'
    assert (tmp_path / "x").read_bytes().count(b"\n") == 4


def test_counts_that_are_as_promised_give_no_warning() -> None:
    assert Fetched(3, 1, 1, 2, 4).complete
    assert Fetched(3, 1, 1, 2, 5).complete
    assert Fetched(3, 1, 1, 2).complete
    assert not Fetched(3, 1, 1, 2, 3).complete


def test_a_fetch_that_ended_before_its_last_step_asks_nothing_more(tmp_path: Path, monkeypatch: Any) -> None:
    out = tmp_path / "x"
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", lambda self, target: self.rename(target) if target != out else 1 / 0)
        with pytest.raises(ZeroDivisionError):
            collect(pages_of(FIRST, SECOND), out)
    assert collect(pages_of(fail=True), out) == Fetched(3, 1, 1, 2, 3)
    assert out.read_text().count("\n") == 3


def test_a_file_that_exists_is_kept_without_force(tmp_path: Path, go: Go, serve: Serve) -> None:
    out = tmp_path / "x"
    out.write_text("mine")
    server = serve(openreview(1))
    assert "exists already" in go(*command(out, server), code=1).err
    assert out.read_text() == "mine"
    assert not server.asked
    with pytest.raises(DataError):
        collect(pages_of(fail=True), out, force=True)
    assert out.read_text() == "mine"
    part = tmp_path / "x.part"
    part.write_text("mine too")
    assert "x.part: is in the way" in go(*command(out, server, "--force"), code=1).err
    assert part.read_text() == "mine too"
    go(*command(out, server, "--force", "--restart"), code=0)
    assert list(tmp_path.iterdir()) == [out]


# arXiv


def entry(number: int) -> str:
    return f"""<entry>
    <id>http://arxiv.org/abs/2401.{number:05d}v2</id><updated>2024-02-03T00:00:00Z</updated>
    <published>2024-01-02T10:00:00Z</published>
    <title>Herons &amp; buoys,
  part {number}</title>
    <summary>  Herons sit on buoys in the river mouth.
We count them by the hour of the tide.
</summary>
    <author><name>A. Nemo</name></author><author><name>Bea Nobody</name></author>
    <arxiv:comment xmlns:arxiv="http://arxiv.org/schemas/atom">3 pages</arxiv:comment>
    <arxiv:primary_category xmlns:arxiv="http://arxiv.org/schemas/atom" term="cs.LG"/>
    <category term="cs.LG"/><category term="stat.ML"/></entry>"""


def feed(entries: str, total: int) -> Answer:
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">'
    count = f'<opensearch:totalResults xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/">{total}'
    return Answer(f"{head}{count}</opensearch:totalResults>{entries}</feed>")


def test_a_query_of_arxiv_is_ingested(
    serve: Serve, go: Go, tmp_path: Path, waits: list[float], monkeypatch: Any
) -> None:
    monkeypatch.setattr("abstag.sources.arxiv._LIMIT", 2)

    def respond(asked: Asked) -> Answer:
        start = int(asked.parameters["start"])
        if start == 2 and len(server.asked) == 2:
            return feed("", 5)  # empty in the middle, with status 200
        return feed("".join(map(entry, range(start, min(start + 2, 5)))), 5)

    server, out = serve(respond), tmp_path / "x.jsonl"
    ran = go("fetch", "arxiv", "cat:cs.LG AND abs:heron", "-o", out, "--url", f"{server.url}/api/query", code=0)
    assert ran.out == "fetched 5, 0 duplicates, 0 without content, 3 pages, expected 5\n"
    assert [asked.parameters["start"] for asked in server.asked] == ["0", "2", "2", "4"]
    assert {asked.parameters["search_query"] for asked in server.asked} == {"cat:cs.LG AND abs:heron"}
    assert {asked.path for asked in server.asked} == {"/api/query"}
    assert lines(out)[3] == {
        "id": "2401.00003",
        "version": "2",
        "title": "Herons & buoys,\n  part 3",
        "abstract": "Herons sit on buoys in the river mouth.\nWe count them by the hour of the tide.",
        "authors": ["A. Nemo", "Bea Nobody"],
        "categories": "cs.LG stat.ML",
        "comments": "3 pages",
        "published": "2024-01-02T10:00:00Z",
        "update_date": "2024-02-03T00:00:00Z",
    }
    assert sum(2.5 < wait <= 3 for wait in waits) >= 3
    go("ingest", out, "-o", tmp_path / "corpus", code=0)
    ingested = json.loads(go("describe", tmp_path / "corpus", "--json", code=0).out)
    assert (ingested["years"], ingested["venues"]) == ({"2024": 5}, {"arXiv": 5})


WRONG = "<entry><id>http://arxiv.org/api/errors#no</id><title>Error</title><summary>malformed query</summary></entry>"


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (feed(WRONG, 1), "arXiv refuses: malformed query"),
        (feed("", 0), "the source has nothing that fits"),
        (Answer("<html><p>Rate exceeded.</p></html>"), "the answer is not feed but html"),
        (Answer("<html><p>Rate exceeded."), "the answer is no XML"),
        (Answer('<!DOCTYPE feed [<!ENTITY a "x">]><feed>&a;</feed>'), "a page for browsers, or has a DTD"),
    ],
)
def test_arxivs_own_errors_are_told(serve: Serve, go: Go, tmp_path: Path, answer: Answer, told: str) -> None:
    server = serve(lambda asked: answer)
    assert told in go("fetch", "arxiv", "x", "-o", tmp_path / "x", "--url", server.url, code=1).err
    assert not list(tmp_path.iterdir())


def record(number: int, day: str = "2024-03-01") -> str:
    header = f"<header><identifier>oai:arXiv.org:2403.{number:05d}</identifier><datestamp>{day}</datestamp></header>"
    return f"""<record>{header}<metadata><arXiv xmlns="http://arxiv.org/OAI/arXiv/">
    <id>2403.{number:05d}</id><created>2024-02-29</created><authors><author><keyname>Nemo</keyname>
    <forenames>A.</forenames></author><author><keyname>Nobody</keyname><forenames>Bea</forenames><suffix>Jr</suffix>
    </author></authors><title>Keels of wood {number}</title><categories>cs.LG cs.RO</categories>
    <abstract>  We plane keels of wood with a hand tool.
Nothing else is done in this paper.</abstract></arXiv></metadata></record>"""


DELETED = (
    '<record><header status="deleted"><identifier>oai:x</identifier><datestamp>2024-03-01</datestamp></header></record>'
)


def harvested(inside: str) -> Answer:
    return Answer(f'<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/">{inside}</OAI-PMH>')


def listed(records: str, token: str = "", size: int = 5) -> Answer:
    resumption = f'<resumptionToken cursor="0" completeListSize="{size}">{token}</resumptionToken>'
    return harvested(f"<ListRecords>{records}{resumption}</ListRecords>")


def error(code: str) -> Answer:
    return harvested(f'<error code="{code}">said by the server</error>')


SET = ["fetch", "arxiv", "--set", "cs", "--from", "2024-03-01", "--until", "2024-03-09"]


def test_a_set_of_arxiv_is_ingested(serve: Serve, go: Go, tmp_path: Path, waits: list[float]) -> None:
    tokens = {
        None: listed(record(1) + DELETED + record(2), "t1"),
        "t1": listed(record(2) + record(3), "t2"),
        "t2": listed(record(4)),
    }

    def respond(asked: Asked) -> Answer:
        if len(server.asked) == 1:
            return Answer("come back later", 503, {"Retry-After": "20"})
        return tokens[asked.parameters.get("resumptionToken")]

    server, out = serve(respond), tmp_path / "x.jsonl"
    ran = go(*SET, "-o", out, "--url", f"{server.url}/oai", code=0)
    assert ran.out == "fetched 4, 1 duplicates, 1 without content, 3 pages, expected 5\n"
    first, last = server.asked[1].parameters, server.asked[-1].parameters
    span = {"from": "2024-03-01", "until": "2024-03-09"}
    assert first == {"verb": "ListRecords", "metadataPrefix": "arXiv", "set": "cs", **span}
    assert last == {"verb": "ListRecords", "resumptionToken": "t2"}
    assert max(waits) == 20
    assert lines(out)[0] == {
        "id": "2403.00001",
        "created": "2024-02-29",
        "authors": ["A. Nemo", "Bea Nobody Jr"],
        "title": "Keels of wood 1",
        "categories": "cs.LG cs.RO",
        "abstract": "We plane keels of wood with a hand tool.\nNothing else is done in this paper.",
        "published": "2024-02-29",
        "update_date": "2024-03-01",
    }
    go("ingest", out, "-o", tmp_path / "corpus", code=0)
    ingested = json.loads(go("describe", tmp_path / "corpus", "--json", code=0).out)
    assert (ingested["years"], ingested["venues"]) == ({"2024": 4}, {"arXiv": 4})


@pytest.mark.parametrize(("days", "since"), [(("04", "05"), "2024-03-05"), (("05", "04"), "2024-03-01")])
def test_an_expired_token_begins_again_at_the_last_day(
    serve: Serve, go: Go, tmp_path: Path, days: tuple[str, str], since: str
) -> None:
    """Where days do not rise, they say nothing of what is still to come, so that all is asked for again."""
    four, five = (f"2024-03-{day}" for day in days)

    def respond(asked: Asked) -> Answer:
        if asked.parameters.get("resumptionToken") == "old":
            return error("badResumptionToken")
        if asked.parameters.get("resumptionToken") == "new":
            return listed(record(3, "2024-03-06"), size=3)
        seen = sum("from" in other.parameters for other in server.asked)
        return listed(record(1, four) + record(2, five), "new" if seen > 1 else "old", 3)

    server, out = serve(respond), tmp_path / "x.jsonl"
    ran = go(*SET, "-o", out, "--url", server.url, code=0)
    assert ran.out.startswith("fetched 3, 2 duplicates, 0 without content, 3 pages, expected 3")
    assert [asked.parameters["from"] for asked in server.asked if "from" in asked.parameters] == ["2024-03-01", since]


def test_a_token_that_has_expired_when_a_fetch_goes_on(serve: Serve, go: Go, tmp_path: Path) -> None:
    """Also where the server deals the same token again."""
    day = ["first"]

    def respond(asked: Asked) -> Answer:
        if "resumptionToken" not in asked.parameters:
            return listed(record(1), "t", 2)
        if day[0] == "first":
            return Answer("", 403)
        if len(server.asked) == 3:
            return error("badResumptionToken")
        return listed(record(2), size=2)

    server, out = serve(respond), tmp_path / "x.jsonl"
    go(*SET, "-o", out, "--url", server.url, code=1)
    day[0] = "second"
    ran = go(*SET, "-o", out, "--url", server.url, code=0)
    assert ran.out == "fetched 2, 1 duplicates, 0 without content, 3 pages, expected 2\n"
    assert [paper["id"] for paper in lines(out)] == ["2403.00001", "2403.00002"]


def test_the_same_token_for_ever_is_an_error(serve: Serve, go: Go, tmp_path: Path) -> None:
    server = serve(lambda asked: listed(record(1), "t"))
    assert "the same page for ever" in go(*SET, "-o", tmp_path / "x", "--url", server.url, code=1).err


def test_a_token_that_is_never_taken_is_an_error(serve: Serve, go: Go, tmp_path: Path) -> None:
    def respond(asked: Asked) -> Answer:
        return (
            error("badResumptionToken")
            if "resumptionToken" in asked.parameters
            else listed(record(1), f"t{len(server.asked)}")
        )

    server, out = serve(respond), tmp_path / "x.jsonl"
    ran = go(*SET, "-o", out, "--url", server.url, code=1)
    assert "badResumptionToken: said by the server; run the same command again" in ran.err
    assert len(server.asked) == 4
    assert len(lines(tmp_path / "x.jsonl.part")) == 1


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (error("noRecordsMatch"), "no paper was changed in these days; choose other days, or another set"),
        (error("badArgument"), "badArgument: said by the server; check --set, --from and --until"),
        (error("badResumptionToken"), "badResumptionToken: said by the server"),
        (listed(DELETED), "the source has nothing that fits"),
        (harvested(""), "the source has nothing that fits"),
    ],
)
def test_protocol_errors_are_told(serve: Serve, go: Go, tmp_path: Path, answer: Answer, told: str) -> None:
    server = serve(lambda asked: answer)
    assert told in go(*SET, "-o", tmp_path / "x", "--url", server.url, code=1).err
    assert len(server.asked) == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["arxiv"], "name a QUERY or a --set"),
        (["arxiv", "x", "--set", "cs"], "name a QUERY or a --set"),
        (["arxiv", "x", "--from", "2024-01-01"], "only a --set has --from and --until"),
        (["arxiv", "--set", "cs", "--from", "1.2.2024"], "--from: '1.2.2024' is no day; write YYYY-MM-DD"),
        (["arxiv", "--set", "cs", "--from", "2024-02-02", "--until", "2024-02-01"], "2024-02-01 is before 2024-02-02"),
        (["openreview", "a/b", "--url", "file:///etc/passwd"], "is no web address"),
        (["openreview", "a/b", "--url", "http://x y/"], "is no web address"),
        (["hub", "."], ".: is here already"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_asked(
    go: Go, tmp_path: Path, arguments: list[str], told: str
) -> None:
    assert told in go("fetch", *arguments, "-o", tmp_path / "x", code=1).err
    assert not list(tmp_path.iterdir())


# The hub


def hub(files: Mapping[str, bytes], commit: str = "a" * 40) -> Respond:
    """Return the answers of the hub that holds one data set, own/herons."""
    about: dict[str, Any] = {"id": "own/herons", "sha": commit, "siblings": [{"rfilename": name} for name in files]}
    about |= {"private": False, "gated": False, "disabled": False, "tags": [], "downloads": 0, "likes": 0}
    tree = [{"type": "file", "path": name, "size": len(body), "oid": "0" * 40} for name, body in files.items()]

    def respond(asked: Asked) -> Answer:
        if re.fullmatch(r"/api/datasets/own/herons(/revision/\w+)?", asked.path):
            return said(about)
        if asked.path == f"/api/datasets/own/herons/tree/{commit}":
            return said(tree)
        name = asked.path.removeprefix(f"/datasets/own/herons/resolve/{commit}/")
        if name not in files:
            return Answer(
                "Not found", 404, {"X-Error-Code": "EntryNotFound" if "herons" in asked.path else "RepoNotFound"}
            )
        start = int((re.match(r"bytes=(\d+)", asked.headers.get("Range", "")) or [0, 0])[1])
        body, headers = files[name], {"ETag": f'"{len(files[name])}"', "X-Repo-Commit": commit}
        if start or "Range" in asked.headers:
            return Answer(body[start:], 206, headers | {"Content-Range": f"bytes {start}-{len(body) - 1}/{len(body)}"})
        return Answer(body, headers=headers)

    return respond


HUB = """
import sys
from abstag.cli import main
from abstag.sources import hub

hub._ROWS, pages = 3, hub._pages

def cut(*arguments):
    for number, page in enumerate(pages(*arguments)):
        if number == 2:
            raise KeyboardInterrupt
        yield page

fetch = ["fetch", "hub", "own/herons", "-o"]
hub._pages = cut
print(main([*fetch, "x.jsonl", "--columns", "title, abstract"]), flush=True)
print(open("x.jsonl.part").read().count("\\n"))
hub._pages = pages
print(main([*fetch, "x.jsonl", "--columns", "title, abstract"]))
print(main([*fetch, "y.jsonl", "--split", "nope"]))
print(main([*fetch, "y.jsonl", "--columns", "title,colour"]))
print(main(["fetch", "hub", "own/egrets", "-o", "y.jsonl"]))
"""


@pytest.mark.slow
def test_a_data_set_of_the_hub_is_fetched_in_two_goes_and_ingested(serve: Serve, go: Go, tmp_path: Path) -> None:
    """In a process of its own, since the hub's client reads HF_ENDPOINT when it is imported."""
    rows = [
        {"title": f"Buoy {number}", "abstract": f"We moor buoy number {number} in the river.", "other": number}
        for number in range(10)
    ]
    texts = ["".join(json.dumps(row) + "\n" for row in shard) for shard in (rows[:4], rows[4:8], rows[8:])]
    server = serve(hub({f"train-{number}.jsonl": text.encode() for number, text in enumerate(texts)}))
    environment = os.environ | {"HF_ENDPOINT": server.url, "HF_HUB_OFFLINE": "0", "HF_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-c", HUB]
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300
    )
    counts = "fetched 10, 0 duplicates, 0 without content, 4 pages"
    assert done.stdout.splitlines() == ["130", "6", counts, "0", "1", "1", "1"], done.stderr
    assert lines(tmp_path / "x.jsonl") == [{name: row[name] for name in ("title", "abstract")} for row in rows]
    assert (
        json.loads(go("ingest", tmp_path / "x.jsonl", "-o", tmp_path / "corpus", "--json", code=0).out)["records"] == 10
    )
    assert "abstag: own/herons: Bad split: nope. Available splits: ['train']" in done.stderr
    assert "abstag: own/herons: Column name ['colour'] not in the dataset" in done.stderr
    assert "abstag: own/egrets: 404" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.glob("y.jsonl*"))
