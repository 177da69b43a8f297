"""Keys and ids are the hashes that the contract says, errors are one line, rows can be taken."""

import hashlib
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abstag.errors import AbstagError, ArtifactError, ConfigError, DataError, MissingExtraError
from abstag.records import Documents, Record, Targets, content_id, text_hash, title_key


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@pytest.mark.parametrize(
    ("title", "letters"),
    [
        ("A!", "a"),
        ("Pruning Twice, Training Once", "pruningtwicetrainingonce"),
        ("Ｗhy ﬁne-tuning HELPS: β₂ & Straße", "whyfinetuninghelpsβ2strasse"),
        ("Cafe\u0301 $x_1$ -- 7B", "caféx17b"),
        ("  图神经网络 2.0 ", "图神经网络20"),
        ("snake_case", "snakecase"),
    ],
)
def test_title_key_is_the_hash_of_the_folded_letters_and_digits(title: str, letters: str) -> None:
    assert title_key(title) == sha(letters)


def test_hashes_do_not_change_between_versions() -> None:
    assert title_key("A!") == "ca978112ca1bbdca"
    assert text_hash("") == "e3b0c44298fc1c14"
    assert content_id(None, "abc") == hashlib.sha256(b"\nabc").hexdigest()[:16]
    assert content_id("Short Walks", "We walk.") == hashlib.sha256(b"Short Walks\nWe walk.").hexdigest()[:16]


@pytest.mark.parametrize("title", [None, "", "  ", "?!", "— … —", "_"])
def test_a_title_without_letters_has_no_key(title: str | None) -> None:
    assert title_key(title) is None


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_case_and_punctuation_do_not_change_a_key(title: str) -> None:
    assert title_key(f" -{title}!? ") == title_key(title)
    assert title_key(title.casefold()) == title_key(title)


@given(st.text(), st.text())
def test_every_text_has_a_content_id(title: str, abstract: str) -> None:
    found = content_id(title or None, abstract)
    assert len(found) == 16
    assert int(found, 16) >= 0


def test_a_lone_surrogate_can_be_hashed() -> None:
    assert len(text_hash("\ud800")) == 16


@pytest.mark.parametrize("kind", [AbstagError, DataError, ConfigError, ArtifactError])
def test_an_error_is_where_what_and_remedy_on_one_line(kind: type[AbstagError]) -> None:
    error = kind("line one\n  line two\ttail", where="dump.csv:7", remedy="mend\nit")
    assert str(error) == "dump.csv:7: line one line two tail; mend it"
    assert (error.what, error.where, error.remedy) == ("line one\n  line two\ttail", "dump.csv:7", "mend\nit")
    assert isinstance(error, AbstagError)


def test_where_and_remedy_may_be_left_out() -> None:
    assert str(DataError("nothing there")) == "nothing there"
    assert str(DataError("nothing there", where=3)) == "3: nothing there"
    assert str(DataError("nothing there", remedy="look again")) == "nothing there; look again"


def test_a_missing_extra_names_the_install() -> None:
    assert str(MissingExtraError("torch", "neural")) == "torch is not installed; pip install 'abstag[neural]'"


def test_rows_of_documents() -> None:
    documents = Documents(["a", "b", "c"], ["One", "", "Three"], ["x", "y", "z"])
    assert len(documents) == 3
    assert documents.texts == ["One\nx", "\ny", "Three\nz"]
    assert documents[np.array([2, 0])] == Documents(["c", "a"], ["Three", "One"], ["z", "x"])
    assert len(documents[np.array([], dtype=np.intp)]) == 0


def test_rows_of_targets() -> None:
    values, known = np.array([[True, False], [False, False], [True, True]]), np.ones((3, 2), dtype=np.bool_)
    targets = Targets(values, known, np.arange(6.0).reshape(3, 2))
    assert len(targets) == 3
    for rows in (np.array([0, 2]), np.array([True, False, True]), slice(0, 3, 2)):
        taken = targets[rows]
        assert taken.values.tolist() == [[True, False], [True, True]]
        assert taken.weight.tolist() == [[0, 1], [4, 5]]
        assert taken.known.shape == (2, 2)


def test_records_cannot_be_changed() -> None:
    record = Record("dump.txt", 1, None, "An abstract.")
    assert (record.areas, record.judged, record.declared, record.sure) == (None, None, (), True)
    with pytest.raises(FrozenInstanceError):
        record.n = 2  # type: ignore[misc]
