r"""BibTeX: a text cut into entries at constant memory, fields with their positions, and LaTeX both ways.

The rules are BibTeX's own: braces count inside quotes and after a backslash, and ``#`` joins. Where they fail, ``\{``,
``\}`` and ``\"`` are tried as letters. Commas may be missing; an unknown macro stands for its name; ``@comment{…}`` and
what follows ``%`` outside entries are no entries. What begins like an entry, at the start of a line or after a closing
brace, begins one, whatever is still open: a brace that lacks costs one entry, and the time is linear.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Any, NamedTuple

_START = re.compile(
    r"\A[\s\ufeff]*+@\s*+(?:(?:string|preamble|comment)\s*+[{(]"
    r"|[a-z][\w-]*+\s*+[{(]\s*+[^\s{}(),=\"@]*+\s*+(?:,|\Z))"
    r"|(?<=\})\s*+@\s*+(?:comment\s*+\{|[a-z][\w-]*+\s*+\{\s*+[^\s{}(),=\"@]*+\s*+,)",
    re.IGNORECASE | re.ASCII,
)
_OPENING = re.compile(
    r"(?<=[\r\n])[ \t]*+%[^\r\n]*+|(?<!\w)@\s*+([a-z][\w-]*+)\s*+(?:\{|\((?=\s*+[^\s{}(),=\"@]*+\s*+[,=]))",
    re.IGNORECASE | re.ASCII,
)
_PERCENT = re.compile(r"[ \t]*+%[^\r\n]*+")
_COMMENT = re.compile(r"[\s\ufeff]*+@\s*+comment\s*+\{", re.IGNORECASE)
_HELD = 100
_KEY = re.compile(r"[^,={}]*+")
_SPACE = re.compile(r"(?:\s|%[^\r\n]*+)*+")
_BETWEEN = re.compile(r"(?:[\s,]|%[^\r\n]*+)*+")
_NAME = re.compile(r"[^\s=,{}()#%\"'@\\]++")
_BARE = re.compile(r"[^\s,#{}()\"=%]*+")
_TOO_EARLY = re.compile(r"\s*+,\s*+[a-z][\w-]*+\s*+=", re.IGNORECASE)
_BREAK = re.compile(r"\r\n|\r|\n")
_MACRO = 2000  # characters that macros may add to one value: they could double with each @string

_TOKEN = re.compile(
    r"(?P<math>\$\$[^$]++\$\$|\$(?!\s)(?:[^$\\]|\\.)+?(?<!\s)\$(?!\d))"
    r"|(?P<letter>\\(?:[`'^\"~=.]\s*(?:\{\s*\\?[a-zA-Z]\s*\}|\\[ij](?![a-zA-Z])|[a-zA-Z])"
    r"|[uvHcdbkr](?:\s*\{\s*\\?[a-zA-Z]\s*\}|\s+[a-zA-Z](?![a-zA-Z]))"
    r"|(?:ss|ae|AE|oe|OE|aa|AA|dh|DH|dj|DJ|th|TH|ng|NG|[oOlLij])(?![a-zA-Z])(?:\{\}|\s+(?=\w))?))"
    r"|(?P<sign>\\text(?:asciitilde|asciicircum|backslash|braceleft|braceright|less|greater|bar)(?![a-zA-Z])(?:\{\}|\s+)?)"
    r"|(?P<command>\\[a-zA-Z]+\*?|\\.)|[{}&%#_^~$\\]",
    re.DOTALL,
)
_SIGNS = {"~": "asciitilde", "^": "asciicircum", "\\": "backslash", "{": "braceleft", "}": "braceright"}
_NAMED = {name: sign for sign, name in _SIGNS.items()} | {"less": "<", "greater": ">", "bar": "|"}


class Field(NamedTuple):
    """A field: name in small letters, value with macros resolved, where the name and each joined part of it stand."""

    name: str
    value: str
    start: int
    parts: tuple[tuple[int, int], ...]

    def moved(self, by: int) -> "Field":
        """Return the field in a text with ``by`` more characters before it."""
        return self._replace(start=self.start + by, parts=tuple((start + by, end + by) for start, end in self.parts))


class Block(NamedTuple):
    """What an ``@`` begins: kind in small letters, key, where it stands; ``fault`` says why it cannot be read."""

    kind: str
    key: str | None
    start: int
    end: int
    fields: tuple[Field, ...] = ()
    fault: str | None = None


class Entry(NamedTuple):
    """An entry with the text before it since the last one (after the last entry: to the end), and its 1-based line."""

    text: str
    line: int
    block: Block


class _FaultError(Exception):
    """What is wrong inside a block."""


def entries(lines: Iterable[str]) -> Iterator[Entry]:
    """Yield the entries of a text that comes in lines with their ends; the texts of all are the whole text.

    Of a text without any entry nothing is yielded.
    """
    macros, held, line = dict[str, str](), None, 1
    before, size = list[str](), 0
    for chunk in _chunks(lines):
        at = 0
        for block in _blocks(chunk, macros):
            if block.kind == "string":
                macros.update((field.name, field.value) for field in block.fields if len(field.value) <= _MACRO)
            if block.kind in ("string", "preamble", "comment"):
                continue
            if held:
                yield held
            text, by = "".join([*before, chunk[at : block.end]]), size - at
            fields = tuple(field.moved(by) for field in block.fields)
            block = block._replace(start=block.start + by, end=block.end + by, fields=fields)  # noqa: PLW2901
            held = Entry(text, line + _breaks(text[: block.start]), block)
            line += _breaks(text)
            before, size, at = [], 0, held.block.end - by
        before.append(chunk[at:])
        size += len(chunk) - at
    if held:
        yield held._replace(text="".join([held.text, *before]))


def share(head: str) -> float:
    """Return the part of a text, 0 to 1, that stands in or after what begins like an entry; lines after ``%`` aside."""
    pieces = list(_pieces(head.splitlines(keepends=True)))
    first = "" if not pieces or _START.match(pieces[0]) else pieces.pop(0)
    inside = sum(map(len, pieces))
    lines = (line for line in first.splitlines(keepends=True) if not _PERCENT.match(line))
    outside = "".join(lines).lstrip("\ufeff \t\r\n")
    if _OPENING.match(outside):  # its key is none, as "Lamp 2020"
        return 1.0
    return inside / max(inside + len(outside), 1)


def plain(text: str) -> str:
    r"""Return text on one line without LaTeX accents, escaped signs and grouping braces.

    ``{\'E}tude of {GAN}s \& co.`` → Étude of GANs & co. Formulas and the arguments of commands stay as they are, and so
    does ``\$``: what is left is LaTeX still.
    """
    if "\\" in text or "{" in text or "}" in text:
        text = "".join(map(_plain, _tokens(text)))
    return " ".join(text.split())


def escaped(text: str) -> str:
    r"""Return text on one line as a value between braces: ``R&D {50%}`` → ``R\&D \{50\%\}``.

    Formulas and LaTeX commands with their arguments are left as they are, if all braces are balanced.
    """
    text = " ".join(text.split())
    balanced = _is_balanced(text)
    return "".join(_escaped(token, balanced=balanced) for token in _tokens(text))


def _plain(token: tuple[str, str]) -> str:
    kind, text = token
    if kind == "letter":
        return _letter(text)
    if kind == "sign":
        return _NAMED[text[5:].rstrip("{} \t\r\n")]
    if kind == "command" and text[1:] in "&%#_{}":
        return text[1:]
    return "" if kind == "group" else text


def _escaped(token: tuple[str, str], *, balanced: bool) -> str:
    kind, text = token
    if not balanced and kind != "other":
        return re.sub(r"\\?([{}])", lambda brace: _named(brace[1]), text)
    if kind == "group":
        return f"\\{text}"
    return _escaped_sign(text) if kind == "other" else text


def _escaped_sign(text: str) -> str:
    return f"\\{text}" if text in ("&", "%", "#", "_", "$") else _named(text) if text in ("~", "^", "\\") else text


def _named(sign: str) -> str:
    return f"\\text{_SIGNS[sign]}{{}}"


def _is_balanced(text: str) -> bool:
    depth = 0
    for brace in re.finditer(r"[{}]", text):
        depth += 1 if brace[0] == "{" else -1
        if depth < 0:
            return False
    return depth == 0


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """Yield kind and text: math, letter, sign, command, argument and group (braces), other (signs, and all between)."""
    at, argument, open_ = 0, -1, list[str]()  # a brace where an argument may stand opens one
    for token in _TOKEN.finditer(text):
        if token.start() > at:
            yield "other", text[at : token.start()]
        kind, at = token.lastgroup or "other", token.end()
        if token[0] == "{":
            before = text[token.start() - 1 : token.start()]
            kind = "argument" if argument == token.start() or before in ("^", "_") else "group"
            open_.append(kind)
        elif token[0] == "}":
            kind = open_.pop() if open_ else "group"
        if (kind == "command" and token[0][1:].rstrip("*").isalpha()) or (kind == "argument" and token[0] == "}"):
            argument = at
        yield kind, token[0]
    if at < len(text):
        yield "other", text[at:]


@lru_cache(maxsize=4096)
def _letter(latex: str) -> str:
    return unicodedata.normalize("NFC", str(_converter().latex_to_text(latex)).strip())


@cache
def _converter() -> Any:
    from pylatexenc.latex2text import LatexNodes2Text

    return LatexNodes2Text()


def _pieces(lines: Iterable[str]) -> Iterator[str]:
    """Cut before everything that begins like an entry."""
    held = list[str]()
    for line in lines:
        at = 0
        for start in _START.finditer(line) if "@" in line else ():
            held.append(line[at : start.start()])
            at = start.start()
            if piece := "".join(held):
                yield piece
            held = []
        held.append(line[at:])
    if piece := "".join(held):
        yield piece


def _chunks(lines: Iterable[str]) -> Iterator[str]:
    """Yield pieces, those of a comment with entries inside together; a comment without end is one piece."""
    held, depth = list[str](), 0
    for piece in _pieces(lines):
        depth += piece.count("{") - piece.count("}")
        if not held:
            depth = piece.count("{") - piece.count("}")
            if depth <= 0 or not _COMMENT.match(piece):
                yield piece
                continue
        held.append(piece)
        if depth <= 0:
            yield "".join(held)
            held = []
        elif len(held) > _HELD:
            yield from held
            held = []
    yield from held


def _blocks(text: str, macros: Mapping[str, str]) -> Iterator[Block]:
    at = 0
    while True:
        if comment := _PERCENT.match(text, at):
            at = comment.end()
        found = _OPENING.search(text, at)
        if not found:
            return
        at = found.end()
        if not found[1]:
            continue
        block = _block(text, found, macros)
        at = block.end
        yield block


def _block(text: str, opening: re.Match[str], macros: Mapping[str, str]) -> Block:
    kind, start, inside = opening[1].lower(), opening.start(), opening.end()
    if kind in ("comment", "preamble"):
        return Block(kind, None, start, _end(text, inside - 1))
    fault = None
    for letters in (False, True):
        try:
            key, fields, end = _body(text, inside, macros, letters=letters)
        except _FaultError as error:
            fault = fault or str(error)
        else:
            return Block(kind, key, start, end, fields)
    found = _KEY.match(text, inside)
    key = found[0].strip()[:200] if found and text[found.end() : found.end() + 1] == "," else ""
    return Block(kind, key or None, start, _end(text, inside - 1), fault=fault)


def _end(text: str, opening: int) -> int:
    """Return where the group ends that opens at a brace; the end of the text if it never does."""
    try:
        return _closed(text, opening, letters=False) if text[opening] == "{" else len(text)
    except _FaultError:
        return len(text)


def _body(text: str, at: int, macros: Mapping[str, str], *, letters: bool) -> tuple[str | None, tuple[Field, ...], int]:
    """Return key, fields and end of a block whose delimiter opens before ``at``."""
    closing = ")" if text[at - 1] == "(" else "}"
    key, at = _key(text, at, closing)
    fields = list[Field]()
    while True:
        at = _over(_BETWEEN, text, at)
        if text[at : at + 1] == closing:
            if closing == "}" and _TOO_EARLY.match(text, at + 1):
                raise _FaultError("a brace closes the entry before its last field")
            return key, tuple(fields), at + 1
        if at == len(text):
            raise _FaultError("the entry never closes")
        name = _NAME.match(text, at)
        equals = _over(_SPACE, text, name.end()) if name else at
        if not name or text[equals : equals + 1] != "=":
            shown = name[0][:40] if name else text[at]
            raise _FaultError(f"no field begins at {shown!r}")
        parts = tuple(_parts(text, equals + 1, name[0][:40], letters=letters))
        fields.append(Field(name[0].lower(), _value(text, parts, macros), at, parts))
        at = parts[-1][1]


def _key(text: str, at: int, closing: str) -> tuple[str | None, int]:
    found = _KEY.match(text, at)
    end = found.end() if found else at
    if text[end : end + 1] == "=":  # no comma after the key, or no key
        words = text[at:end].split()
        name = words.pop() if words else ""
        return " ".join(words) or None, text.rindex(name, at, end)
    if closing == ")" and ")" in text[at:end]:
        end = text.index(")", at)
    elif text[end : end + 1] not in (",", closing):
        raise _FaultError("no key")
    return text[at:end].strip() or None, end


def _over(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


def _parts(text: str, at: int, name: str, *, letters: bool) -> Iterator[tuple[int, int]]:
    """Yield where the parts of a value stand that ``#`` joins; a value that lacks is one part without characters."""
    while True:
        at = _over(_SPACE, text, at)
        try:
            opening = text[at : at + 1]
            end = _closed(text, at, letters=letters) if opening in ("{", '"') else _over(_BARE, text, at)
        except _FaultError as error:
            raise _FaultError(f"the value of {name} {error}") from error
        yield at, end
        joint = _over(_SPACE, text, end)
        if text[joint : joint + 1] != "#":
            return
        at = joint + 1


_MARKS = {
    (sign, letters): re.compile((r"\\.|" if letters else "") + ("[{}]" if sign == "{" else '[{}"]'), re.DOTALL)
    for sign in '{"'
    for letters in (False, True)
}


def _closed(text: str, at: int, *, letters: bool) -> int:
    """Return where the group or the quotation ends that opens at ``at``."""
    depth = 0
    for mark in _MARKS[text[at], letters].finditer(text, at + 1):
        if depth == 0 and mark[0] == ('"' if text[at] == '"' else "}"):
            return mark.end()
        if mark[0] in "{}":
            depth += 1 if mark[0] == "{" else -1
        if depth < 0:
            raise _FaultError("has a closing brace too many")
    raise _FaultError("never closes")


def _value(text: str, parts: Iterable[tuple[int, int]], macros: Mapping[str, str]) -> str:
    values, left = list[str](), _MACRO
    for start, end in parts:
        if text[start:end][:1] in ("{", '"'):
            values.append(text[start + 1 : end - 1])
        else:
            name = text[start:end]
            value = macros.get(name.lower(), name)
            values.append(value if len(value) <= left else name)
            left -= len(value)
    return "".join(values)


def _breaks(text: str) -> int:
    return len(_BREAK.findall(text))
