"""A patient client: it keeps a pause between requests, obeys Retry-After, and tries again what may pass."""

import gzip
import logging
import random
import re
import zlib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from time import monotonic, sleep
from typing import TypeVar
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from abstag import __version__
from abstag.errors import ConfigError, DataError

_LOG = logging.getLogger(__name__)
_TRIES = 6
_TIMEOUT = 60  # seconds without a byte
_LONGEST = 600  # seconds that are waited when a server asks for it
_ADDRESS = re.compile(r"https?://[\w.-]+(?::\d{1,5})?(?:/[\w./~%-]*)?", re.ASCII)
_PASSING = frozenset((408, 425, 429, 500, 502, 503, 504))
_REMEDIES = {
    401: "this needs an account, which abstag does not ask for",
    403: "the server refuses this address or asks for an account; wait a while, or name a mirror with --url",
    404: "check the name, and --url if you gave one",
}

Answer = TypeVar("Answer")


class PassingError(Exception):
    """A try failed, or its answer is not what the source promises; the next may be, ``after`` seconds later."""

    def __init__(self, what: str, after: float = 0.0) -> None:
        super().__init__(what)
        self.after = after


class RefusedError(DataError):
    """The server refuses for good, with this HTTP status."""

    def __init__(self, status: int, said: str, url: str) -> None:
        what = f"the server answers {status}{': ' + said if said else ''}"
        super().__init__(what, where=url, remedy=_REMEDIES.get(status))
        self.status = status


def endless(url: str) -> DataError:
    """Return the error of a source that goes on with the page that it has just given."""
    return DataError("the source gives the same page for ever", where=url, remedy="try later, or another mirror")


class Client:
    """Asks one host.

    Parameters
    ----------
    url
        Where requests go; http or https, without a query.
    pause
        Seconds between the end of a request and the next.

    Raises
    ------
    ConfigError
        The URL is not like that.
    """

    def __init__(self, url: str, *, pause: float) -> None:
        if not _ADDRESS.fullmatch(url):
            raise ConfigError(f"{url!r} is no web address", where="--url", remedy="it begins with https:// or http://")
        self.url, self._pause, self._free = url.rstrip("/"), pause, 0.0

    def get(self, parameters: Mapping[str, str | int], parse: Callable[[bytes], Answer], path: str = "") -> Answer:
        """Return what ``parse`` makes of the answer; a try that fails, or that it calls a `PassingError`, is repeated.

        Raises
        ------
        RefusedError
            The server refuses, and would again.
        DataError
            No try succeeded, or the server asks for a wait of more than ten minutes.
        """
        url, what = f"{self.url}{path}?{urlencode(parameters)}", ""
        for number in range(1, _TRIES + 1):
            sleep(max(0.0, self._free - monotonic()))
            try:
                return parse(_asked(url))
            except PassingError as error:
                what = str(error)
                wait = max(error.after, 2.0**number * random.uniform(1, 1.5))  # noqa: S311  # no secret
            finally:
                self._free = monotonic() + self._pause
            if wait > _LONGEST:
                remedy = "run the same command again after that; it goes on"
                raise DataError(f"{what}, and asks for a pause of {wait:.0f} s", where=url, remedy=remedy)
            if number < _TRIES:
                _LOG.info("%s; try %d of %d in %.0f s", what, number + 1, _TRIES, wait)
                sleep(wait)
        remedy = "check the network, and run the same command again; it goes on"
        raise DataError(f"gave up after {_TRIES} tries: {what}", where=url, remedy=remedy)


def _asked(url: str) -> bytes:
    """Return the body that one request gives; raises PassingError, and RefusedError where another would not help."""
    headers = {"User-Agent": f"abstag/{__version__} (fetches abstracts for tagging)", "Accept-Encoding": "gzip"}
    try:
        with urlopen(Request(url, headers=headers), timeout=_TIMEOUT) as answer:  # noqa: S310  # `Client` has looked
            body: bytes = answer.read()
            return gzip.decompress(body) if answer.headers.get("Content-Encoding") == "gzip" else body
    except HTTPError as error:
        if error.code not in _PASSING:
            raise RefusedError(error.code, _said(error), url) from error
        after = _retry_after(error.headers.get("Retry-After"))
        raise PassingError(f"the server answers {error.code}", after) from error
    except (OSError, HTTPException, EOFError, zlib.error) as error:  # no network, cut off, or too slow
        raise PassingError(f"the connection failed: {getattr(error, 'reason', error)!s}") from error


def _said(error: HTTPError) -> str:
    """Return the beginning of what the server says in plain text or JSON; a page for browsers says nothing."""
    try:
        body = error.read(2000).decode(errors="replace")
    except (OSError, HTTPException):
        return ""
    return "" if body.lstrip().startswith("<") else " ".join(body.split())[:200]


def _retry_after(value: str | None) -> float:
    """Return the seconds of a Retry-After, which is a number or a date; 0 without one."""
    if value is None:
        return 0.0
    if value.strip().isdecimal():
        return float(value)
    try:
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):  # no date, or one without a zone
        return 0.0
