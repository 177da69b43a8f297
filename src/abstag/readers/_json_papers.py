"""Where papers stand inside JSON: in lists, pages, objects keyed by id, one in another; events in, papers out."""

import re
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Any, NamedTuple

ABSTRACTS = (  # folded keys that hold an abstract, and nothing else; the first with a text counts
    *("abstracten", "abstractenglish", "englishabstract", "abstract", "abstractnote", "abstracttext", "paperabstract"),
    *("ab", "abstractinvertedindex", "indexedabstract"),
)
TITLES = ("title", "displayname", "papertitle", "articletitle", "ti", "name")
WRAPPERS = frozenset(("content", "data", "paper", "_source", "attributes", "info", "metadata", "article", "bibjson"))
_IDENTITY = frozenset((*TITLES, "id", "key", "doi", "forum", "paperid", "url"))
_LISTS = re.compile(  # lists of papers
    "data|papers|notes|results|records|items|entries|entry|events|hits?|docs|documents|works|articles|publications|"
    "submissions|posters|orals|spotlights|talks|workshops|tutorials|socials|sessions|contributions"
)
_PARTS = re.compile(  # what inside a paper may look like others
    "references?|referencedworks|citations?|citedby|related(?:works|events)?|similar|recommendations|authors|versions|"
    "reviews|(?:direct)?replies|comments|details|locations"
)
_DEPTH, _VALUES = 100, 1_000_000
_STARTS, _ENDS = frozenset(("start_map", "start_array")), frozenset(("end_map", "end_array"))


class Found(NamedTuple):
    """What stands where a paper may.

    Attributes
    ----------
    value
        The paper, or what stands in its place; an exception for what cannot be held.
    key
        Its key, where papers are members of an object.
    path
        The names of what is around it but usual ones of lists, joined by spaces.
    """

    value: object
    key: str | None = None
    path: str = ""


class _Frame:
    """A container that is being read; what is ``open`` holds papers and keeps nothing."""

    __slots__ = ("fault", "key", "keyed", "name", "open", "value")

    def __init__(self, value: Any, name: str | None, *, is_open: bool = False) -> None:
        self.value, self.name, self.open = value, name, is_open
        self.key: str | None = None
        self.keyed = False
        self.fault: Exception | None = None


@lru_cache(maxsize=4096)
def folded(key: str) -> str:
    """Return a key without what spellings differ in: ``Abstract_Note`` and ``abstractNote`` are one."""
    return "".join(filter(str.isalnum, key.casefold()))


def papers(events: Iterable[tuple[str, Any]], names: AbstractSet[str]) -> Iterator[Found]:
    """Yield what stands at papers' places, in order, holding one paper at a time.

    An object is a paper once it, or an object that it wraps, has one of ``names``, the folded keys of abstracts, be it
    null; objects and lists around papers are none. Where no paper shows, the elements of a list of a usual name are
    its papers, else the object as a whole is. An object with papers as members is keyed by their ids. An element that
    is nested more than 100 deep, or has more than a million values, is an exception.
    """
    return _Walk(names).papers(events)


class _Walk:
    """The containers around the present place, outermost first."""

    def __init__(self, names: AbstractSet[str]) -> None:
        self._names = names
        self._stack: list[_Frame] = []
        self._sealed: int | None = None  # number of the frame inside which no paper is looked for
        self._found: list[Found] = []
        self._inside = 0  # how many containers are open inside one that was given up

    def papers(self, events: Iterable[tuple[str, Any]]) -> Iterator[Found]:
        stack, held = self._stack, 0
        for event, value in events:
            if stack and stack[-1].fault and self._skips(event):
                continue
            if event == "map_key":
                stack[-1].key = value
                if self._sealed is None and folded(value) in self._names:
                    self._settle()
            elif event in _STARTS:
                self._start(is_map=event == "start_map")
            elif event in _ENDS:
                self._end()
            else:
                self._put(value)
            held += 1
            if self._found:
                path = " ".join(
                    frame.name for frame in stack if frame.open and frame.name and not _is(_LISTS, frame.name)
                )
                yield from (found._replace(path=path) for found in self._found)
                self._found, held = [], 0
            elif len(stack) > _DEPTH or held > _VALUES:
                deep, held = len(stack) > _DEPTH, 0
                much = f"nested more than {_DEPTH} deep" if deep else f"more than {_VALUES:,} values in one record"
                self._fail(ValueError(much))

    def _start(self, *, is_map: bool) -> None:
        stack = self._stack
        parent = stack[-1] if stack else None
        listed = parent is not None and isinstance(parent.value, list) and _is(_LISTS, parent.name)
        if is_map and listed and self._sealed is None:
            self._open(len(stack))
        name = parent.key if parent else None
        stack.append(_Frame({} if is_map else [], name, is_open=parent is None and not is_map))
        if self._sealed is None and _is(_PARTS, name):
            self._sealed = len(stack) - 1

    def _end(self) -> None:
        frame = self._stack[-1]
        if self._sealed is None and isinstance(frame.value, dict) and _is_summarised(frame.value):
            self._settle()
        self._stack.pop()
        if self._sealed is not None and self._sealed >= len(self._stack):
            self._sealed = None
        if not frame.open:
            self._put(frame.fault or frame.value)

    def _put(self, value: object) -> None:
        """Keep a complete value, or yield it where it stands at a paper's place."""
        frame = self._stack[-1] if self._stack else None
        if frame is None:
            if not _is_empty_page(value):
                self._found.append(Found(value))
        elif not frame.open:
            if isinstance(frame.value, dict):
                frame.value[frame.key] = value
            else:
                frame.value.append(value)
        elif frame.key is None:
            if not _is_empty_page(value):
                self._found.append(Found(value))
        elif isinstance(value, Exception) or (frame.keyed and isinstance(value, dict)):
            self._found.append(Found(value, frame.key))

    def _settle(self) -> None:
        """Take the object at hand, or the one that wraps it, for a paper; what is around it is open."""
        stack, at = self._stack, len(self._stack) - 1
        while at and not stack[at - 1].open and isinstance(stack[at - 1].value, dict):
            name = (stack[at].name or "").casefold()
            if name not in WRAPPERS and _IDENTITY.isdisjoint(map(folded, stack[at - 1].value)):
                stack[at - 1].keyed = True
                break
            at -= 1
        if at and stack[at - 1].open and stack[at - 1].key is not None:
            stack[at - 1].keyed = True
        self._open(at)
        self._sealed = at

    def _open(self, number: int) -> None:
        """Open so many of the outermost containers: what they hold already are papers, or about the list."""
        for frame in self._stack[:number]:
            if not frame.open:
                if isinstance(frame.value, list):
                    self._found += map(Found, frame.value)
                elif frame.keyed:
                    self._found += [Found(value, key) for key, value in frame.value.items() if isinstance(value, dict)]
                frame.value, frame.open = None, True

    def _fail(self, error: Exception) -> None:
        """Give up the outermost container that is not open."""
        at = next((number for number, frame in enumerate(self._stack) if not frame.open), None)
        if at is not None:
            self._stack[at].value, self._stack[at].fault = None, error
            self._inside = len(self._stack) - at - 1
            del self._stack[at + 1 :]

    def _skips(self, event: str) -> bool:
        """Return whether an event is inside the container that was given up, not its end."""
        self._inside += (event in _STARTS) - (event in _ENDS)
        return self._inside >= 0


def _is(kind: re.Pattern[str], key: str | None) -> bool:
    return key is not None and kind.fullmatch(folded(key)) is not None


def _is_summarised(value: dict[str, object]) -> bool:
    keys = set(map(folded, value))
    return "summary" in keys and not keys.isdisjoint(TITLES)


def _is_empty_page(value: object) -> bool:
    if not isinstance(value, dict) or not _IDENTITY.isdisjoint(map(folded, value)):
        return False
    return any(_is(_LISTS, key) and inner == [] for key, inner in value.items())
