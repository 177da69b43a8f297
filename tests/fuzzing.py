"""What fuzzing shares: dumps to begin with, damage done to them, and what must hold of whatever is read.

The families are the formats, "packed" for files that are unpacked first, and "text" for cleaning.
"""

import bz2
import csv
import gzip
import io
import json
import lzma
import re
import time
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from hypothesis import strategies as st

from abstag.abstracts import fault, own
from abstag.cleaning import clean
from abstag.errors import AbstagError
from abstag.files import to_json
from abstag.ingest import cleaned
from abstag.languages import english, foreign, words
from abstag.readers import expand, formats, open_dump
from abstag.records import Record, Reject
from abstag.tagger import Tagger

FAMILIES = (*sorted(formats()), "packed", "text")

_DUMPS = Path(__file__).parent / "dumps"
_EXPECTED = ".expected.json"
_SECONDS, _SECONDS_A_BYTE = 0.5, 60e-6  # several times what is usual: machines are shared
_MEMORY, _MEMORY_A_BYTE = 16e6, 200
_LARGEST = 100_000  # bytes of what is repeated
_TAGGED = 16  # one of so many dumps is tagged, too
_ENDINGS = {"table": ".csv", "xlsx": ".xlsx", "markdown": ".md", "plain": ".txt"}
_TEXT = (
    "We walk through a garden of small gradients and count the petals that fall from each of them. "
    "The count turns out to be even on Sundays, and odd on the days when the gardener sleeps late."
)
_SIGNS = r"""
[ ] { } " \\ , : ; | \t \n \n\n \r \r\n \x20 \0 \xef\xbb\xbf \xff \xed\xa0\x80 \\ud800 \xc2\x85 \xe2\x80\xa8 \x1e \x0c
' # null NaN 1e999 -0 99999999999999999999999999999999 {"abstract": "abstract":"a" {"papers":[ [[ }{ @article{
@string{a= @comment{ abstract={ "#a#" % @ = ( ) {\\'e} \nTY\x20\x20-\x20JOUR\n \nER\x20\x20-\x20\n \nAB\x20\x20-\x20
\nN2\x20\x20-\x20 \nPMID-\x201\n \n<1>\n \nPT\x20J\n \nER\n \nRT\x20Journal\n \n%0\x20Book\n \n%X\x20 < > </ /> <!--
--> <![CDATA[ ]]> <?xml\x20 <!DOCTYPE\x20a\x20[<!ENTITY\x20b\x20'c'>]> &b; & &#0; &#x110000; <record> <entry>
<article> <dc> \n#\x20 \n-\x20 \n1.\x20 \n>\x20 ** ]( \n---\n \n| ``` <details><summary> Abstract:\x20 sep=;\n "" ",
\nabstract,title\n =1+ _x0000_ $ $$ \\frac{ \\begin{ ~ -- https://openreview.net/forum?id= 10.1000/ Keywords:\x20
\xc2\xa9\x202020\x20 -\x20 &amp; <p> a
"""
_TOKENS = [token.encode().decode("unicode_escape").encode("latin-1") for token in _SIGNS.split()]
_BORDER = re.compile(rb"[\s,;:|{}\[\]<>\"=()@&\\]")
_ENCODINGS = ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig", "cp1252", "cp037")

Items = list[Record | Reject]
T = TypeVar("T")


def check(family: str, data: bytes, *, once: bool = False) -> None:
    """Read bytes as a dump, by their content, as their family and as some other format; or clean them as a text.

    ``once`` leaves out what takes long: other formats, and reading twice, which shows memory and that nothing is left
    to chance. Raises what it finds wrong.
    """
    if family == "text":
        _check_text(data.decode(errors="surrogateescape").replace("\r", ""))
        return
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"dump{_ENDINGS.get(family, '')}"
        path.write_bytes(data)
        other = family if once else FAMILIES[zlib.crc32(data) % len(formats())]
        for file in _files(path):
            for name in dict.fromkeys((None, family, other) if family in formats() else (None,)):
                items, error = _timed(partial(_read, file, name), len(data))
                _check_items(items, len(data))
                if not once:
                    _check_again(file, name, len(data), (items, error))


def _files(path: Path) -> list[str]:
    try:
        return expand([str(path)])
    except AbstagError:
        return []


def _check_items(items: Items, size: int) -> None:
    assert [item.n for item in items] == list(range(1, len(items) + 1))
    for item in items:
        assert isinstance(item, Reject) or item.abstract.strip()
        assert isinstance(item, Record) or item.reason
        to_json([getattr(item, field) for field in item.__dataclass_fields__]).encode()
    for one in _timed(lambda: [cleaned(item) for item in items if isinstance(item, Record)], size):
        assert isinstance(one, Reject) or words(one.abstract) > 0
    if (size + len(items)) % _TAGGED == 0:
        lines = list(_tagger().tag_stream(items))
        assert len(lines) == len(items)
        assert all(to_json(line).encode() for line in lines)


def _check_again(file: str, name: str | None, size: int, before: tuple[Items, str | None]) -> None:
    tracemalloc.start()
    try:
        assert _read(file, name) == before, f"{name}: read twice, two results"
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < _MEMORY + size * _MEMORY_A_BYTE, f"{name}: {peak / 1e6:.0f} MB for {size} bytes"


def _timed(work: Callable[[], T], size: int) -> T:
    """Do work that must take time linear in the size; what is slow may be so but once, as when a library is loaded."""
    for _ in range(2):
        start = time.process_time()
        result = work()
        taken = time.process_time() - start
        if taken < _SECONDS + size * _SECONDS_A_BYTE:
            return result
    raise AssertionError(f"{taken:.1f} s for {size} bytes")


def _read(file: str, name: str | None) -> tuple[Items, str | None]:
    """Return the items up to the end, or up to an error of ours; and that."""
    items: Items = []
    try:
        items.extend(open_dump(file, format=name).items)
    except AbstagError as error:
        return items, str(error)
    return items, None


def _check_text(text: str) -> None:
    once = _timed(lambda: clean(text), len(text))
    assert clean(once) == once
    _timed(lambda: (fault(text), foreign(once)), len(text))
    found = _timed(lambda: own(clean(english(text))), len(text))
    record = cleaned(Record("dump", 1, None, text, text[:200]))
    assert isinstance(record, Reject) or record.abstract == found
    found.encode()


@cache
def _tagger() -> Tagger:
    return Tagger.load()


@cache
def seeds(family: str) -> tuple[bytes, ...]:
    """Return small dumps of a family."""
    made: dict[str, Callable[[], Iterator[bytes]]] = {
        "markdown": _markdown,
        "plain": _plain,
        "parquet": _parquet,
        "xlsx": _xlsx,
        "packed": _packed,
        "text": _texts,
    }
    return (*_committed(family), *made.get(family, lambda: iter(()))())


def _committed(family: str) -> Iterator[bytes]:
    for path in sorted(_DUMPS.glob(f"*/*{_EXPECTED}")):
        dump = Path(str(path).removesuffix(_EXPECTED))
        if dump.is_file() and json.loads(path.read_text(encoding="utf-8"))["format"] == [family]:
            yield dump.read_bytes()


def _markdown() -> Iterator[bytes]:
    yield f"# Papers 2024\n\n## On petals\n\nA. G.\n\n**Abstract:** {_TEXT}\n\n## On lamps\n\n{_TEXT}\n".encode()
    yield f"- [On petals](https://openreview.net/forum?id=abc)\n  - TL;DR: few\n  - Abstract: {_TEXT}\n".encode()
    yield f"| Title | Abstract |\n|---|:--|\n| On petals | {_TEXT} |\n| On \\| lamps | {_TEXT} |\n".encode()
    yield f"<details><summary>On petals</summary>\n\n> {_TEXT}\n</details>\n\n1. **On lamps**: {_TEXT}\n".encode()


def _plain() -> Iterator[bytes]:
    yield f"ICML 2025 Papers\n\n{_TEXT}\n\n{_TEXT}\n\n---\n\nNeurIPS 2024\n\n{_TEXT}\n".encode()


def _rows() -> Iterator[list[object]]:
    yield ["id", "title", "abstract", "year", "keywords"]
    yield ["a1", "On petals", _TEXT, 2024, "petals; lamps"]
    yield ["a2", None, f"=1+{_TEXT}", 2024.5, ""]
    yield ["a3", "On lamps", None, None, None]


def _xlsx() -> Iterator[bytes]:
    from openpyxl import Workbook

    book, out = Workbook(), io.BytesIO()
    for row in _rows():
        book.active.append(row)
    book.create_sheet("notes").append(["only a note"])
    book.save(out)
    yield out.getvalue()
    with zipfile.ZipFile(out) as packed:  # what is not packed can be damaged where it matters
        yield zipped({name: packed.read(name) for name in packed.namelist()}, zipfile.ZIP_STORED)


def _parquet() -> Iterator[bytes]:
    import pyarrow as pa
    import pyarrow.feather as pa_feather
    import pyarrow.parquet as pq

    head, *rows = _rows()
    table = pa.table({str(name): list(map(str, values)) for name, *values in zip(head, *rows, strict=True)})
    nested = pa.table({"content": [{"abstract": _TEXT, "title": ["On", "petals"]}, None], "year": [2024, None]})
    for one in (table, nested):
        for write in (pq.write_table, pa_feather.write_feather):
            out = io.BytesIO()
            write(one, out)
            yield out.getvalue()
        out = io.BytesIO()
        with pa.ipc.new_stream(out, one.schema) as stream:
            stream.write_table(one)
        yield out.getvalue()


def _packed() -> Iterator[bytes]:
    dump = seeds("plain")[0]
    yield from (pack(dump) for pack in (gzip.compress, bz2.compress, lzma.compress))
    yield zipped({"a/one.txt": dump, "two.jsonl": seeds("json")[0], "README.md": b"# About"}, zipfile.ZIP_DEFLATED)
    yield gzip.compress(gzip.compress(dump)) + gzip.compress(dump)


def zipped(files: dict[str, bytes], method: int) -> bytes:
    """Return a zip archive of files by name."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def _texts() -> Iterator[bytes]:
    yield _TEXT.encode()
    yield f"Abstract. {_TEXT} Keywords: petals, lamps. © 2020 IEEE. All rights reserved.".encode()
    yield b"<p>We show $O(1/\\sqrt{T})$ \\cite{a} for **all** uncer- tain &lt;b&gt; $\\mathcal{O}$.</p>"
    yield f"Zusammenfassung: Wir zählen die Blätter, die von den Rosen fallen, und das ist schwer. {_TEXT}".encode()
    yield "我们研究花园里的花瓣。 It works, â€œwellâ€\x9d, and the ﬁrst – last.".encode()


def damaged(family: str) -> st.SearchStrategy[bytes]:
    """Return dumps of a family with some damage, those that `made` builds, and bytes of any kind."""
    whole = st.sampled_from(seeds(family))
    others = st.sampled_from([seed for one in FAMILIES for seed in seeds(one)])
    both = st.builds(_damaged, st.one_of(whole, whole, made(family)), st.lists(_damage(others), min_size=1, max_size=6))
    return st.one_of(both, both, both, made(family), st.binary(max_size=300), st.text(max_size=300).map(_bytes))


def _damage(others: st.SearchStrategy[bytes]) -> st.SearchStrategy[tuple[Any, ...]]:
    """Return what changes bytes, and its arguments."""
    at, length, token = st.integers(0, 1 << 14), st.integers(0, 400), st.sampled_from(_TOKENS)
    times = st.sampled_from((2, 3, 10, 101, 1000, 30_000))
    pieces = st.one_of(token, st.binary(max_size=8), st.builds(bytes.__add__, token, token))
    return st.one_of(
        st.tuples(st.just(_insert), at, pieces),
        st.tuples(st.just(_insert), at, st.builds(_repeated, pieces, times)),
        st.tuples(st.just(_insert), at, st.builds(lambda other, start, size: other[start:][:size], others, at, length)),
        st.tuples(st.just(_repeat), at, length, times),
        st.tuples(st.just(_move), at, length, at),
        st.tuples(st.just(_cut), at, length),
        st.tuples(st.just(_cut), at, st.just(1 << 30)),
        st.tuples(st.just(_put), at, st.integers(0, 255)),
        st.tuples(st.just(_broken), st.sampled_from((b"\r", b"\r\n", b" ", b"\n\n", b""))),
        st.tuples(st.just(_encoded), st.sampled_from(_ENCODINGS)),
    )


def _damaged(data: bytes, damages: Sequence[tuple[Any, ...]]) -> bytes:
    for change, *how in damages:
        data = change(data, *how)
    return data[: 4 * _LARGEST]


def _border(data: bytes, at: int) -> int:
    """Return where some word or sign begins."""
    borders = [found.start() for found in _BORDER.finditer(data)] or [0]
    return borders[at % len(borders)]


def _repeated(piece: bytes, times: int) -> bytes:
    return piece * min(times, _LARGEST // max(1, len(piece)))


def _insert(data: bytes, at: int, piece: bytes) -> bytes:
    at = _border(data, at)
    return data[:at] + piece + data[at:]


def _repeat(data: bytes, at: int, length: int, times: int) -> bytes:
    start = _border(data, at)
    return _insert(data, at, _repeated(data[start : start + length], times))


def _move(data: bytes, at: int, length: int, to: int) -> bytes:
    start = _border(data, at)
    return _insert(_cut(data, at, length), to, data[start : start + length])


def _cut(data: bytes, at: int, length: int) -> bytes:
    at = _border(data, at)
    return data[:at] + data[at + length :]


def _put(data: bytes, at: int, value: int) -> bytes:
    at %= max(1, len(data))
    return data[:at] + bytes([value]) + data[at + 1 :]


def _broken(data: bytes, sign: bytes) -> bytes:
    return data.replace(b"\n", sign)


def _encoded(data: bytes, name: str) -> bytes:
    return data.decode(errors="replace").encode(name, "replace")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


_NAMES = """
abstract title id venue year keywords content value data papers summary type eventtype tags versions areas sure judged
part topic primary_area abstract_inverted_index externalIds authors cdate published @type
"""
_ELEMENTS = """
record records metadata header feed entry summary title abstract article front PubmedArticle MedlineCitation Article
AbstractText dc mods OAI-PMH xml
"""
_TAGS = """
TY ER AB N2 TI T1 PMID PT FN VR UT DE KW RT %0 %T %X <1> SO
"""
_STARTS = (
    "",
    "# ",
    "## ",
    "- ",
    "  - ",
    "1. ",
    "> ",
    "| ",
    "|---|---|",
    "**",
    "Abstract: ",
    "**Abstract**: ",
    "```",
    "---",
)
_KEYS = st.sampled_from(_NAMES.split())
_WORDS = st.one_of(
    st.sampled_from(
        (_TEXT, "", "none", "N/A", "2024", "ICML 2024", "{x}", "a,b;c", 'say "so"', "two\nlines", "A title")
    ),
    st.text(max_size=40),
)
_VALUES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), _WORDS)
_TREES = st.recursive(
    _VALUES,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(_KEYS, inner, max_size=5)),
    max_leaves=25,
)


def made(family: str) -> st.SearchStrategy[bytes]:
    """Return small dumps that are built by a family's grammar from all kinds of values."""
    rows = st.lists(st.lists(_WORDS, max_size=5), max_size=6)
    pairs = st.lists(st.tuples(_KEYS, _WORDS), max_size=6)
    entries = st.lists(pairs, max_size=4)
    tags = st.lists(st.tuples(st.sampled_from(_TAGS.split()), _WORDS), max_size=15)
    lines = st.lists(st.builds(str.__add__, st.sampled_from(_STARTS), _WORDS), max_size=15)
    grammars: dict[str, st.SearchStrategy[Any]] = {
        "bibtex": entries.map(_bibtex),
        "json": st.lists(_TREES, max_size=4).flatmap(lambda trees: st.sampled_from(_joined(trees))),
        "markdown": lines.map("\n".join),
        "parquet": st.lists(st.fixed_dictionaries({"abstract": _WORDS, "a": _TREES}), max_size=4).map(_arrow),
        "plain": st.lists(_WORDS, max_size=10).map("\n\n".join),
        "ris": tags.map(lambda tags: "".join(f"\n{tag}  - {value}" for tag, value in tags)),
        "table": st.builds(_delimited, rows, st.sampled_from(",;\t|")),
        "tagged": tags.map(lambda tags: "".join(f"\n{tag} {value}" for tag, value in tags)),
        "xlsx": st.lists(st.lists(_VALUES, max_size=5), max_size=6).map(_book),
        "xml": _MARKUP.map(lambda inner: f"<?xml version='1.0'?>{inner}"),
        "yaml": entries.map(_yaml),
        "text": st.lists(st.one_of(_WORDS.map(_bytes), st.sampled_from(_TOKENS))).map(b"".join),
    }
    grammar = grammars.get(family, st.sampled_from(seeds(family)))
    return grammar.map(lambda one: one if isinstance(one, bytes) else _bytes(one))


_MARKUP = st.recursive(
    _WORDS.map(lambda text: text.replace("<", "&lt;")),
    lambda inner: st.builds(
        "<{0}>{1}</{0}>".format, st.sampled_from(_ELEMENTS.split()), st.lists(inner, max_size=4).map("".join)
    ),
    max_leaves=20,
)


def _bibtex(entries: Sequence[Sequence[tuple[str, str]]]) -> str:
    return "\n".join(
        f"@article{{key{n},\n" + "".join(f"  {name} = {{{value}}},\n" for name, value in fields) + "}"
        for n, fields in enumerate(entries)
    )


def _yaml(entries: Sequence[Sequence[tuple[str, str]]]) -> str:
    lines = ((f"{name}: {json.dumps(value)}" for name, value in fields) for fields in entries)
    return "".join("- " + "\n  ".join(fields) + "\n" for fields in lines)


def _joined(trees: Sequence[Any]) -> list[str]:
    return [json.dumps(trees), "\n".join(map(json.dumps, trees)), json.dumps({"papers": trees}, indent=1)]


def _arrow(rows: Sequence[dict[str, Any]]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    out = io.BytesIO()
    try:
        pq.write_table(pa.Table.from_pylist(list(rows)), out)
    except (pa.ArrowException, OverflowError, ValueError):  # values of several types, or that it cannot hold
        return seeds("parquet")[0]
    return out.getvalue()


def _delimited(rows: Sequence[Sequence[str]], delimiter: str) -> str:
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter).writerows([["id", "title", "abstract", "year"], *rows])
    return out.getvalue()


def _book(rows: Sequence[Sequence[Any]]) -> bytes:
    from openpyxl import Workbook
    from openpyxl.utils.exceptions import IllegalCharacterError

    book, out = Workbook(), io.BytesIO()
    try:
        for row in [["abstract", "title"], *rows]:
            book.active.append(list(row))
    except (IllegalCharacterError, ValueError):
        pass
    book.save(out)
    return out.getvalue()
