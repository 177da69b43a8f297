"""Areas and venues are data: read, encoded, recognised; what is wrong with them is said in one line."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abstag.errors import DataError
from abstag.files import to_json
from abstag.resources import resource
from abstag.taxonomy import Taxonomy, load_taxonomy, parse_taxonomy

SHIPPED = load_taxonomy()
SMALL = """
name: small
version: 3
areas:
  - id: bandits
    name: Bandits
    keywords: [regret]
    declared: ['bandits?']
  - {id: vision-2, declared: ['\\bimage', 'vision']}
venues:
  ICLR: [Learning Representations]
  C++ Days: []
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "areas.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def small(folder: Path) -> Taxonomy:
    return load_taxonomy(write(folder, SMALL))


def test_a_file_is_read(tmp_path: Path) -> None:
    taxonomy = small(tmp_path)
    assert (taxonomy.name, taxonomy.version, taxonomy.ids) == ("small", 3, ("bandits", "vision-2"))
    assert taxonomy.areas[0].keywords == ("regret",)
    assert taxonomy.areas[1].name == "vision-2"
    assert taxonomy.venues == {"ICLR": ("Learning Representations",), "C++ Days": ()}
    assert load_taxonomy(str(tmp_path / "areas.yaml")).digest == taxonomy.digest


def test_the_shipped_one_has_what_every_classifier_needs() -> None:
    assert len(SHIPPED.ids) == 4
    assert all(area.keywords and area.declared and area.description and area.name for area in SHIPPED.areas)
    assert all(len(set(area.keywords)) == len(area.keywords) for area in SHIPPED.areas)


@given(st.lists(st.booleans(), min_size=4, max_size=4))
def test_decode_undoes_encode(row: list[bool]) -> None:
    areas = SHIPPED.decode(row)
    encoded = SHIPPED.encode(reversed([*areas, *areas]))
    assert encoded.dtype == np.bool_
    assert encoded.tolist() == row
    assert SHIPPED.decode(encoded) == areas


def test_nothing_encodes_as_no_area() -> None:
    assert SHIPPED.encode([]).tolist() == [False] * 4
    assert SHIPPED.decode([False] * 4) == []


def test_unknown_areas_are_named_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(DataError) as error:
        small(tmp_path).encode(["bandits", "zoology", "Bandits"])
    assert str(error.value) == "unknown area 'Bandits', 'zoology'; the taxonomy 'small' has bandits, vision-2"


def test_a_row_of_another_length_is_not_decoded() -> None:
    with pytest.raises(ValueError, match="shorter"):
        SHIPPED.decode([True])


def test_declared_areas_come_in_order_and_once(tmp_path: Path) -> None:
    taxonomy = small(tmp_path)
    assert taxonomy.declared(["computer VISION", "Linear Bandits", "image", "bandit"]) == ["bandits", "vision-2"]
    assert taxonomy.declared(iter(["an image"])) == ["vision-2"]
    assert taxonomy.declared(["reimagined"]) == []
    assert taxonomy.declared([]) == []


@pytest.mark.parametrize(
    ("declared", "areas"),
    [
        (["large language models"], ["llm"]),
        (["graph neural networks"], ["graphs"]),
        (["stable diffusion"], ["diffusion"]),
        (["Bilevel Optimization"], ["optimization"]),
        (["policy optimization"], []),
        (["game theory", "causality"], []),
    ],
)
def test_shipped_declared_patterns(declared: list[str], areas: list[str]) -> None:
    assert SHIPPED.declared(declared) == areas


@pytest.mark.parametrize(
    ("raw", "venue"),
    [
        ("ICLR 2024 poster", "ICLR"),
        ("iclr 2024", "ICLR"),
        ("NeurIPS2023", "NeurIPS"),
        ("NIPS 2016", "NeurIPS"),
        ("ICLR.cc/2025/Conference", "ICLR"),
        ("Advances in Neural Information Processing Systems 35", "NeurIPS"),
        ("Submitted to ICML 2022", "ICML"),
        ("NAACL (long)", "NAACL"),
        ("Proceedings of the 40th International Conference on Machine Learning", "ICML"),
        ("MICLR 2024", "MICLR 2024"),
        ("Journal of Invented Results", "Journal of Invented Results"),
        ("ACLU newsletter", "ACLU newsletter"),
        ("", None),
        (None, None),
    ],
)
def test_venues_get_their_usual_name(raw: str | None, venue: str | None) -> None:
    assert SHIPPED.venue(raw) == venue


@pytest.mark.parametrize("separator", ["_", "-", "/", ".", " "])
def test_a_year_may_follow_a_venue_in_any_way(separator: str) -> None:
    assert SHIPPED.venue(f"ICLR{separator}2024") == "ICLR"


def test_a_venue_name_with_signs_is_found(tmp_path: Path) -> None:
    assert small(tmp_path).venue("c++ days, 2020") == "C++ Days"


@pytest.mark.parametrize(("venue", "form"), [*product(SHIPPED.venues, ["{}", "{} 2031", "{}2031", "Proc. {}"])])
def test_every_spelling_of_a_venue_is_recognised(venue: str, form: str) -> None:
    assert SHIPPED.venue(form.format(venue)) == venue
    assert {SHIPPED.venue(form.format(name)) for name in SHIPPED.venues[venue]} <= {venue}


def test_the_digest_is_that_of_the_content(tmp_path: Path) -> None:
    digest = small(tmp_path).digest
    assert len(digest) == 12
    other = write(
        tmp_path, "# a comment\n" + SMALL.replace("name: small\nversion: 3\n", "") + "version: 3\nname: small"
    )
    assert load_taxonomy(other).digest == digest
    changed = [("[regret]", "[regrets]"), ("version: 3", "version: 4"), ("C++ Days", "C Days"), ("vision-2", "vision")]
    assert len({digest, *(load_taxonomy(write(tmp_path, SMALL.replace(*pair))).digest for pair in changed)}) == 5


def test_a_fifth_area_is_only_data() -> None:
    fifth = {"id": "causality", "name": "Causality", "keywords": ["causal effect"], "declared": ["causal"]}
    taxonomy = parse_taxonomy({**SHIPPED.source, "areas": [*SHIPPED.source["areas"], fifth]})
    assert taxonomy.ids == (*SHIPPED.ids, "causality")
    assert taxonomy.encode(["causality"]).tolist() == [False, False, False, False, True]
    assert taxonomy.declared(["Causal discovery", "LLM agents"]) == ["llm", "causality"]
    assert taxonomy.digest != SHIPPED.digest


A = "areas: [{id: a}]\n"
BAD = {
    "empty": ("", "a taxonomy needs a list `areas`"),
    "a list": ("- id: a\n", "a taxonomy needs a list `areas`"),
    "no areas": ("areas: []\n", "a taxonomy needs a list `areas`"),
    "areas as mapping": ("areas: {a: {}}\n", "a taxonomy needs a list `areas`"),
    "no YAML": ("areas: [\n- {", "the taxonomy is not YAML"),
    "a tab": ("areas:\n\t- id: a\n", "the taxonomy is not YAML"),
    "an object": ("areas: !!python/object:os.system {}\n", "the taxonomy is not YAML"),
    "a control character": ("areas: [{id: a\x07}]\n", "the taxonomy is not YAML"),
    "no id": ("areas: [{name: A}]\n", "area 1: an area needs an id"),
    "a number as id": ("areas: [{id: a}, {id: 7}]\n", "area 2: an area needs an id"),
    "a capital in an id": ("areas: [{id: Llm}]\n", "area 1: an area needs an id"),
    "a semicolon in an id": ('areas: [{id: "a;b"}]\n', "area 1: an area needs an id"),
    "a line end in an id": ('areas: [{id: "a\\n"}]\n', "area 1: an area needs an id"),
    "an area as text": ("areas: [a]\n", "area 1: an area needs an id"),
    "an id twice": ("areas: [{id: a}, {id: b}, {id: a}]\n", "two areas have one id"),
    "an unknown key": ("areas: [{id: a, keyword: [x]}]\n", "area 1: unknown key 'keyword'; did you mean 'keywords'?"),
    "an unlike key": ("areas: [{id: a, colour: red}]\n", "area 1: unknown key 'colour'; known: declared, "),
    "keys of several kinds": ("areas: [{id: a, 7: x, b: y}]\n", "area 1: unknown key '7'; known: "),
    "a misspelt key": (f"{A}venue: {{}}\n", "unknown key 'venue'; did you mean 'venues'?"),
    "areas misspelt": ("area: [{id: a}]\n", "unknown key 'area'; did you mean 'areas'?"),
    "an alias of itself": ("areas: [&a {id: a, description: *a}]\n", "area 1: `description` must be a text"),
    "a name of itself": (f"{A}name: &n [*n]\n", "`name` must be a text"),
    "deep nesting": ("[" * 5000, "the taxonomy is not YAML"),
    "an empty keyword": ("areas: [{id: a, keywords: [x, ' ']}]\n", "area 1: `keywords` holds an empty string"),
    "an empty pattern": ("areas: [{id: a, declared: ['']}]\n", "area 1: `declared` holds an empty string"),
    "an empty spelling": (f"{A}venues: {{ICLR: ['']}}\n", "`ICLR` holds an empty string"),
    "an empty venue": (f"{A}venues: {{'': [x]}}\n", "a venue has an empty name"),
    "keywords as text": ("areas: [{id: a, keywords: x}]\n", "area 1: `keywords` must be a list of strings"),
    "a number as keyword": ("areas: [{id: a, keywords: [7]}]\n", "area 1: `keywords` must be a list of strings"),
    "declared as mapping": ("areas: [{id: a, declared: {x: y}}]\n", "area 1: `declared` must be a list of strings"),
    "a bad pattern": ("areas: [{id: a, declared: ['(']}]\n", "area 1: '(' is not a regular expression"),
    "a text as version": (f"{A}version: one\n", "version must be a whole number, not 'one'"),
    "venues as list": (f"{A}venues: [ICLR]\n", "`venues` must map a name to a list of spellings"),
    "spellings as text": (f"{A}venues: {{ICLR: x}}\n", "`ICLR` must be a list of strings"),
    "no such day": (f"{A}version: 2024-13-01\n", "the taxonomy is not YAML"),
}


@pytest.mark.parametrize("text,message", BAD.values(), ids=BAD)  # noqa: PT006
def test_a_bad_file_is_one_clear_error(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(DataError) as error:
        load_taxonomy(path)
    assert str(error.value).startswith(f"{path}: ")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_cannot_be_read_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes("name: é\n".encode("latin-1"))
    for path in (tmp_path / "none.yaml", tmp_path, tmp_path / "latin"):
        with pytest.raises(DataError, match=f"{path}: cannot read the taxonomy: "):
            load_taxonomy(path)


@pytest.mark.parametrize("extra", ["name: 2024-01-01", "venues: {2024: [], ICLR: []}", "name: .nan", 'name: "\\uD800"'])
def test_what_yaml_makes_of_a_value_survives_json(tmp_path: Path, extra: str) -> None:
    taxonomy = load_taxonomy(write(tmp_path, f"{A}{extra}\n"))
    kept = json.loads(to_json(taxonomy.source))
    assert parse_taxonomy(kept).digest == taxonomy.digest


@pytest.mark.parametrize("empty", [None, ""])
def test_an_empty_name_or_description_is_like_none(empty: Any) -> None:
    area = parse_taxonomy({"areas": [{"id": "a", "name": empty, "description": empty}]}).areas[0]
    assert (area.name, area.description) == ("a", "")


def test_the_shipped_file_is_the_default() -> None:
    assert load_taxonomy(resource("data/taxonomy.yaml")).digest == SHIPPED.digest
