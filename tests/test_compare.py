"""Comparing runs: the same is the same, worse is worse, and unlike runs are refused."""

import dataclasses
import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from abstag import compare as module
from abstag import metrics, statistics
from abstag.compare import compare
from abstag.errors import DataError
from abstag.evaluation import scored_rows
from abstag.results import ScoreTable
from abstag.store import Store, rows_fingerprint
from tests.conftest import make_result, make_scores

KEYS = (
    "a b metric part n difference low high p p_holm verdict text differs_in detectable needed untested seeds decides "
    "discordant level"
)
MEASURES = ["macro_f1", "micro_f1", "f1/a", "f1/b"]


@pytest.fixture(autouse=True)
def fewer_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DRAWS", 1000)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "runs")


def keep(store: Store, run: str, scores: ScoreTable, **changes: Any) -> Path:
    config = {"classifier": {"_target_": run.partition("-")[0]}, "seed": changes.get("seed", 0), "name": "demo"}
    rows = {"fingerprint": rows_fingerprint(scores)}
    return store.save(make_result(run, **({"config": config, "rows": rows} | changes)), scores=scores)


def macro(scores: ScoreTable) -> float:
    return float(
        metrics.macro_f1(metrics.counts(scored_rows(scores, np.ones(len(scores), dtype=np.bool_))).sum(axis=0))
    )


def test_copies_under_other_labels_and_seeds_do_not_differ(store: Store) -> None:
    folders = [keep(store, f"{name}-1", make_scores(), seed=seed) for name, seed in (("nb", 0), ("other", 5))]
    pairs = compare(folders)["pairs"]
    assert [pair["metric"] for pair in pairs] == MEASURES
    for pair in pairs:
        assert pair["difference"] == pair["low"] == pair["high"] == pair["discordant"] == 0
        assert pair["needed"] is None
        assert np.isnan(pair["detectable"])
        assert pair["p"] == pair["p_holm"] == 1
        assert pair["verdict"] == "no_difference"
        assert pair["text"] == "the same tags on all 80 papers"
        assert (pair["a"], pair["b"], pair["differs_in"]) == ("nb", "other", [])


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_run_made_worse_is_found_worse(order: tuple[int, int], store: Store) -> None:
    good = make_scores(wrong=0.05)
    flipped = np.random.default_rng(3).random(good.tags.shape) < 0.25
    bad = dataclasses.replace(good, tags=good.tags ^ flipped)
    folders = [keep(store, "good-1", good), keep(store, "bad-1", bad)]
    for pair in compare([folders[place] for place in order])["pairs"]:
        sign = 1 if order == (0, 1) else -1
        assert pair["verdict"] == ("a_better" if sign > 0 else "b_better")
        assert pair["text"] == "good better"
        assert pair["difference"] * sign > 0.1
        assert min(pair["low"] * sign, pair["high"] * sign) > 0
        assert pair["low"] <= pair["difference"] <= pair["high"]
        assert pair["p_holm"] < 0.05
    assert pair["difference"] * sign == pytest.approx(compare(folders)["pairs"][-1]["difference"])


def test_a_twentieth_of_the_tags_flipped_is_found_on_2000_papers(store: Store) -> None:
    good = make_scores(n=2000, areas="abcd", wrong=0.1)
    flipped = np.random.default_rng(3).random(good.tags.shape) < 0.05
    folders = [
        keep(store, "good-1", good),
        keep(store, "bad-1", dataclasses.replace(good, tags=good.tags ^ flipped)),
        keep(store, "copy-1", good),
    ]
    found = {(pair["a"], pair["b"]): pair for pair in compare(folders)["pairs"] if pair["metric"] == "macro_f1"}
    assert found["good", "bad"]["text"] == "good better"
    assert found["bad", "copy"]["text"] == "copy better"
    assert found["good", "copy"]["verdict"] == "no_difference"


def test_keys_are_those_of_the_contract(store: Store) -> None:
    folders = [keep(store, f"{name}-1", make_scores(seed=seed)) for seed, name in enumerate("xyz")]
    found = compare(folders)
    assert [*found] == ["runs", "pairs", "configurations"]
    assert len(found["pairs"]) == 3 * 4
    for pair in found["pairs"]:
        assert set(pair) == set(KEYS.split())
        assert (pair["part"], pair["n"]) == ("all", 80)
    assert [(pair["a"], pair["b"]) for pair in found["pairs"][:3]] == [("x", "y"), ("x", "z"), ("y", "z")]


def test_verdicts_follow_p_values_adjusted_in_two_families(store: Store) -> None:
    wrongs = (0.05, 0.1, 0.15, 0.2)
    folders = [keep(store, f"{chr(97 + n)}-1", make_scores(wrong=wrong, seed=n)) for n, wrong in enumerate(wrongs)]
    pairs = compare(folders)["pairs"]
    for primary in (True, False):
        family = [pair for pair in pairs if (pair["metric"] == "macro_f1") is primary]
        assert len(family) == 6 * (1 if primary else 3)
        assert [pair["p_holm"] for pair in family] == statistics.holm([pair["p"] for pair in family])
    assert any(pair["p"] < 0.05 <= pair["p_holm"] and pair["verdict"] == "no_difference" for pair in pairs)
    for pair in pairs:
        assert (pair["verdict"] == "no_difference") == (pair["p_holm"] >= 0.05)


def test_difference_of_an_area_is_that_of_its_f1(store: Store) -> None:
    tables = [make_scores(wrong=wrong, seed=n) for n, wrong in enumerate((0.1, 0.2))]
    pairs = compare([keep(store, f"{n}-1", table) for n, table in enumerate(tables)])["pairs"]
    every = np.ones(80, dtype=np.bool_)
    f1 = [metrics.f1(metrics.counts(scored_rows(table, every)).sum(axis=0)) for table in tables]
    assert [pair["difference"] for pair in pairs[2:]] == pytest.approx(list(f1[0] - f1[1]))


def test_what_could_have_been_found_is_said(store: Store) -> None:
    """By theory a paired difference at the edge of detection needs the papers there are, half of it four times."""
    pair = compare([keep(store, f"{n}-1", make_scores(wrong=0.1, seed=n)) for n in (3, 6)])["pairs"][0]
    assert pair["verdict"] == "no_difference"
    spread = (pair["high"] - pair["low"]) / (2 * 1.96)
    assert pair["detectable"] == pytest.approx(2.802 * spread, rel=0.05)
    assert pair["needed"] == pytest.approx(80 * (pair["detectable"] / pair["difference"]) ** 2, rel=0.06)
    assert f"; {pair['detectable']:.3f} would be found 4 times in 5" in pair["text"]
    assert f", and {abs(pair['difference']):.3f}, if true, with about {pair['needed']:,} papers" in pair["text"]


def test_a_plan_for_a_hundred_times_the_papers_is_none(store: Store) -> None:
    pair = compare([keep(store, f"{n}-1", make_scores(wrong=0.1, seed=n)) for n in (3, 4)])["pairs"][0]
    assert pair["needed"] > 100 * pair["n"]
    assert pair["text"].endswith(
        f", and {abs(pair['difference']):.3f}, if true, with more than 100 times as many papers"
    )


@pytest.mark.parametrize(("few", "told"), [(9, True), (10, False)])
def test_systems_that_differ_on_few_papers_are_too_alike_to_tell(few: int, told: bool, store: Store) -> None:
    """A swap test cannot find what stands on a handful of papers, and the bootstrap takes its spread for too small."""
    scores = make_scores()
    tags = scores.tags.copy()
    tags[:few, 0] ^= True
    tags[: few // 2, 0] ^= True
    tags[: few // 2, 1] ^= True
    other = dataclasses.replace(scores, tags=tags)
    pair = compare([keep(store, "a-1", scores), keep(store, "b-1", other)])["pairs"][0]
    assert pair["discordant"] == few
    if pair["verdict"] == "no_difference":
        assert np.isnan(pair["detectable"]) == told
        assert pair["text"].startswith(f"no difference detected: they differ on {few} of 80 papers") == told


def test_same_tags_are_no_test_and_cost_the_others_nothing(store: Store) -> None:
    tables = [make_scores(wrong=0.1, seed=3), make_scores(wrong=0.1, seed=3), make_scores(wrong=0.2, seed=4)]
    first, second, copy = compare([keep(store, f"{name}-1", own) for name, own in zip("abc", tables, strict=True)])[
        "pairs"
    ][:3]
    assert (first["verdict"], first["p_holm"], second["discordant"]) == ("no_difference", 1.0, copy["discordant"])
    assert second["p_holm"] == pytest.approx(2 * second["p"])


def test_what_could_be_found_falls_with_the_number_of_tests(store: Store) -> None:
    """By Holm the pair with the highest of six p-values has to pass 0.05, the next one 0.05 / 2, ..."""
    folders = [keep(store, f"{n}-1", make_scores(wrong=0.1, seed=n)) for n in (3, 4, 5, 6)]
    two, four = (compare(some)["pairs"] for some in (folders[:2], folders))
    primary = [pair for pair in four if pair["metric"] == "macro_f1"]
    assert sorted(0.05 / pair["level"] for pair in primary) == pytest.approx([1, 2, 3, 4, 5, 6])
    assert max(primary, key=lambda pair: pair["p"])["level"] == 0.05
    assert four[0]["detectable"] / two[0]["detectable"] == pytest.approx(
        statistics.detectable(1.0, level=four[0]["level"]) / statistics.detectable(1.0)
    )
    assert two[1]["detectable"] > statistics.detectable(1.0) * (two[1]["high"] - two[1]["low"]) / (2 * 1.96) * 1.1


def test_repeats_of_a_run_are_no_seeds(store: Store) -> None:
    folders = [
        keep(store, run, make_scores(), seed=0, config={"classifier": {"C": 1}, "seed": 0, "name": run})
        for run in ("a-1", "a-2")
    ]
    with pytest.raises(DataError, match="a-2 and a-1 are one configuration with one seed; name the runs"):
        compare([*folders, keep(store, "b-1", make_scores(seed=3))])


def test_configurations_show_intervals_and_the_spread_of_seeds(store: Store) -> None:
    seeds = [make_scores(seed=seed) for seed in range(3)]
    folders = [keep(store, f"nb-{seed}", scores, seed=seed) for seed, scores in enumerate(seeds)]
    found = compare([*folders, keep(store, "svm-1", make_scores(wrong=0.3, seed=9))])["configurations"]
    assert [item["name"] for item in found] == ["nb", "svm"]
    assert found[0]["runs"] == ["nb-0", "nb-1", "nb-2"]
    own = found[0]["metrics"]["macro_f1"]
    assert own["seeds"] == [min(map(macro, seeds)), max(map(macro, seeds))]
    assert own["value"] == pytest.approx(np.mean([macro(scores) for scores in seeds]))
    assert own["low"] < own["value"] < own["high"]
    assert [*found[0]["metrics"]] == MEASURES
    total = np.mean([metrics.counts(scored_rows(s, np.ones(80, dtype=np.bool_))).sum(axis=0)[0] for s in seeds], axis=0)
    area = found[0]["metrics"]["f1/a"]
    assert (area["low"], area["high"]) == statistics.f1_posterior(total[0], total[1] + total[2])  # fewer than 100


def test_areas_with_enough_positives_have_bootstrap_intervals(store: Store) -> None:
    tables = [make_scores(n=700, seed=n) for n in range(2)]
    assert tables[0].gold.sum(axis=0).min() > 200
    found = compare([keep(store, f"{n}-1", table) for n, table in enumerate(tables)])["configurations"][0]
    counted = metrics.counts(scored_rows(tables[0], np.ones(700, dtype=np.bool_)))
    (draws,) = statistics.bootstrap([counted], tables[0].groups, metrics.f1, draws=module.DRAWS, seed=0)
    area = found["metrics"]["f1/b"]
    assert (area["low"], area["high"]) == pytest.approx(statistics.interval(draws[:, 1]))


@pytest.mark.parametrize("number", [4, 5])
def test_seeds_are_tested_from_five_on(number: int, store: Store) -> None:
    tables = {
        name: [make_scores(wrong=w, seed=s + int(500 * w)) for s in range(number)]
        for name, w in (("a", 0.1), ("b", 0.2))
    }
    folders = [keep(store, f"{name}-{s}", own[s], seed=s) for name, own in tables.items() for s in range(number)]
    pairs = compare(folders)["pairs"]
    assert all(pair["seeds"] is None for pair in pairs[1:])
    if number < 5:
        assert pairs[0]["seeds"] is None
    else:
        first, second = (np.array([macro(scores) for scores in own]) for own in tables.values())
        found = dict(pairs[0]["seeds"])
        assert found.pop("test") == "paired t"
        assert found == pytest.approx(statistics.paired_t(first - second)._asdict())
        store = Store(store.root.parent / "other")
        folders = [
            keep(store, f"{n}-{s}", own[s], seed=s + 9 * (n == "b")) for n, own in tables.items() for s in range(5)
        ]
        found = dict(compare(folders)["pairs"][0]["seeds"])
        assert found.pop("test") == "Welch"
        assert found == pytest.approx(statistics.welch(first, second)._asdict())


def test_intervals_of_scores_on_request_and_from_the_cache(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DRAWS_OF_SCORES", 200)
    tables = [make_scores(wrong=wrong, seed=n) for n, wrong in enumerate((0.05, 0.2))]
    folders = [keep(store, f"{n}-1", table) for n, table in enumerate(tables)]
    assert compare(folders)["pairs"][0]["untested"] == {}
    found = compare(folders, all_intervals=True)
    assert len(list((store.root / ".draws").iterdir())) == 4  # of two runs, all papers and the random sample
    parts = tables[0].named_parts()
    for name in metrics.RESAMPLED:
        part = "random" if name in {"ece", "automation_95"} else "all"
        values = [metrics.METRICS[name](scored_rows(table, parts[part])) for table in tables]
        for item, value in zip(found["configurations"], values, strict=True):
            own = item["metrics"][name]
            assert own["part"] == part
            assert own["value"] == pytest.approx(value)
            assert own["low"] <= value <= own["high"] or name in {"ece", "automation_95"}  # these two are biased
        gap = found["pairs"][0]["untested"][name]
        assert gap["difference"] == pytest.approx(values[0] - values[1])
        assert gap["low"] < gap["high"]
    assert all(pair["untested"] == {} for pair in found["pairs"][1:])
    for path in list((store.root / ".draws").iterdir())[:2]:
        path.write_bytes(b"")  # a killed writer, or a full disk
    assert compare(folders, all_intervals=True) == found
    monkeypatch.setattr(statistics, "bootstrap_weights", None)
    assert compare(folders, all_intervals=True) == found


def with_stress(scores: ScoreTable) -> ScoreTable:
    parts = ["hard" if number % 4 == 0 else "test" if number % 4 == 1 else "random" for number in range(len(scores))]
    return dataclasses.replace(scores, parts=parts)


def test_verdicts_rest_on_the_random_and_test_parts(store: Store) -> None:
    tables = [with_stress(make_scores(n=400, wrong=wrong, seed=n)) for n, wrong in enumerate((0.05, 0.3))]
    folders = [keep(store, f"{n}-1", table) for n, table in enumerate(tables)]
    kept = tables[0].named_parts()["test+random"]
    hard = tables[0].named_parts()["hard"]
    assert (kept == (~hard | tables[0].random)).all()
    pair = compare(folders)["pairs"][0]
    assert (pair["part"], pair["n"], pair["text"]) == ("test+random", int(kept.sum()), "0 better")
    for part in ("hard", "all"):
        pair = compare(folders, part=part)["pairs"][0]
        assert pair["verdict"] == "a_better"
        assert not pair["decides"]
        assert pair["text"] == "0 better; a stress set, which decides nothing, is among these papers"


def test_a_tagger_that_knows_its_test_papers_is_refused_and_named(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(folder: Path) -> None:
        (folder / "keys").touch()

    known = frozenset({"p003", "p007", "p010", "p011", "elsewhere"})
    monkeypatch.setattr(module, "training_keys", lambda folder: known if (folder / "keys").exists() else frozenset())
    folders = [keep(store, "a-1", make_scores())]
    for run, train in (("leaky-1", [40]), ("folds-1", [40, 40])):
        scores = make_scores(seed=1)
        config = {"classifier": {"_target_": run}, "seed": 0, "name": "demo"}
        rows = {"fingerprint": rows_fingerprint(scores), "train": train}
        folders.append(store.save(make_result(run, config=config, rows=rows), scores=scores, bundle=write))
    message = r"leaky-1: 4 of its 80 test papers were trained on: p003, p007, p010 …; its scores"
    with pytest.raises(DataError, match=message):
        compare(folders[:2])
    assert compare([folders[0], folders[2]])["pairs"]  # the tagger of a run with folds is not the one that scored


def test_seeds_of_one_configuration_are_averaged(store: Store) -> None:
    seeds = [make_scores(seed=seed) for seed in range(3)]
    other = make_scores(wrong=0.3, seed=9)
    folders = [keep(store, f"nb-{seed}", scores, seed=seed) for seed, scores in enumerate(seeds)]
    found = compare([*folders, keep(store, "svm-1", other)])
    assert len(found["runs"]) == 4
    assert len(found["pairs"]) == 4
    expected = np.mean([macro(scores) for scores in seeds]) - macro(other)
    assert found["pairs"][0]["difference"] == pytest.approx(expected, abs=1e-12)
    assert found["pairs"][0]["a"] == "nb"


def test_order_of_papers_does_not_matter(store: Store) -> None:
    scores = make_scores()
    shuffled = scores.take(np.random.default_rng(0).permutation(len(scores)))
    pairs = compare([keep(store, "a-1", scores), keep(store, "b-1", shuffled)])["pairs"]
    assert [pair["difference"] for pair in pairs] == [0] * 4


def changed(scores: ScoreTable, what: str) -> ScoreTable:
    if what == "papers":
        return dataclasses.replace(scores, ids=[*scores.ids[:-1], "zzz"])
    if what == "fewer":
        return scores.take(np.arange(len(scores) - 1))
    if what == "areas":
        return dataclasses.replace(scores, areas=("a", "c"))
    array = np.array(getattr(scores, what))
    array[3] = 0 if what == "groups" else ~array[3]
    changes: dict[str, Any] = {what: array}
    return dataclasses.replace(scores, **changes)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("papers", "other test papers than a-1; only runs on the same papers"),
        ("fewer", "other test papers than a-1"),
        ("areas", "other areas than a-1"),
        ("gold", "other gold labels than a-1"),
        ("known", "other masks and gold labels than a-1|other masks than a-1"),
        ("groups", "other duplicate groups than a-1"),
    ],
)
def test_unlike_runs_are_refused(what: str, message: str, store: Store) -> None:
    folders = [keep(store, "a-1", make_scores()), keep(store, "b-1", changed(make_scores(), what))]
    with pytest.raises(DataError, match=message) as caught:
        compare(folders)
    assert str(caught.value).startswith("b-1: ")


def test_other_taxonomy_is_refused(store: Store) -> None:
    other = {"name": "t", "version": 2, "digest": "e"}
    folders = [keep(store, "a-1", make_scores()), keep(store, "b-1", make_scores(), taxonomy=other)]
    with pytest.raises(DataError, match="other taxonomy than a-1"):
        compare(folders)


def test_groups_with_other_numbers_are_the_same_groups(store: Store) -> None:
    """A corpus with one more dump in front numbers the same groups differently."""
    scores = dataclasses.replace(make_scores(), groups=np.arange(80, dtype=np.intp) // 2)
    moved = dataclasses.replace(scores, groups=scores.groups + 1000)
    assert compare([keep(store, "a-1", scores), keep(store, "b-1", moved)])["pairs"]


def test_one_configuration_or_unfinished_runs_are_refused(store: Store) -> None:
    folders = [keep(store, f"nb-{seed}", make_scores(seed=seed), seed=seed) for seed in range(2)]
    known = "finished runs: nb-0, nb-1"
    for chosen, message in (
        (folders[:1], f"^nb-0: .*; {known}$"),
        (folders, f"^nb-0, nb-1: .*; {known}$"),
        ([], "lists"),
    ):
        with pytest.raises(DataError, match="needs two different configurations") as caught:
            compare(chosen)
        assert re.search(message, str(caught.value))
    failed = store.save(make_result("svm-1", status="failed"))
    with pytest.raises(DataError, match=r"svm-1: the run is failed, not done; run it again"):
        compare([*folders, failed])


def test_part_is_chosen_or_that_of_the_runs(store: Store) -> None:
    brief = make_result().parts
    folders = [
        keep(
            store, f"{name}-1", make_scores(seed=n), metric_part="iclr-test", parts=brief | {"iclr-test": brief["all"]}
        )
        for n, name in enumerate("ab")
    ]
    rows = make_scores().named_parts()
    assert {(pair["part"], pair["n"]) for pair in compare(folders)["pairs"]} == {("iclr-test", rows["iclr-test"].sum())}
    assert {(pair["part"], pair["n"]) for pair in compare(folders, part="all")["pairs"]} == {("all", 80)}
    with pytest.raises(DataError, match=r"no part 'dev'; parts: all, "):
        compare(folders, part="dev")


def test_too_few_positives_give_no_verdict(store: Store) -> None:
    tables = [make_scores(wrong=wrong, seed=n) for n, wrong in enumerate((0.0, 0.4))]
    gold = tables[0].gold.copy()
    gold[np.flatnonzero(gold[:, 1])[9:], 1] = False
    tables = [dataclasses.replace(table, gold=gold) for table in tables]
    pairs = compare([keep(store, f"{n}-1", table) for n, table in enumerate(tables)])["pairs"]
    for pair in (pairs[0], pairs[3]):
        assert pair["verdict"] == "too_few"
        assert pair["text"] == "too few positives in b (9): about 89 papers needed to test at all"
        assert np.isnan(pair["detectable"])
        assert np.isnan(pair["p_holm"])
    assert [pairs[place]["verdict"] for place in (1, 2)] == ["a_better"] * 2  # micro-F1 pools areas; the other area


def test_differs_in_names_what_differs_beside_the_classifier(store: Store) -> None:
    base = {"split": {"folds": 2}, "name": "x", "seed": 0}
    configs = [base | {"classifier": {"C": 1}}, base | {"classifier": {"D": 2}, "split": {"folds": 5}, "name": "y"}]
    folders = [keep(store, f"{n}-1", make_scores(seed=n), config=config) for n, config in enumerate(configs)]
    for pair in compare(folders)["pairs"]:
        assert pair["differs_in"] == ["split.folds"]
        assert pair["text"].endswith("(they also differ in split.folds: 2 against 5)")


def test_differs_in_names_other_training_data(store: Store) -> None:
    """The same test papers, but one corpus has more papers to train on: the classifier is not all that differs."""
    more = {"name": "c", "fingerprint": "beef"}
    folders = [keep(store, "a-1", make_scores()), keep(store, "b-1", make_scores(seed=1), corpus=more)]
    assert all(pair["differs_in"] for pair in compare(folders)["pairs"])


def test_two_settings_of_one_classifier_are_told_apart_by_run(store: Store) -> None:
    folders = [keep(store, f"nb-{n}", make_scores(seed=n), config={"classifier": {"C": n}}) for n in range(2)]
    pair = compare(folders)["pairs"][0]
    assert (pair["a"], pair["b"]) == ("nb-0", "nb-1")


def test_real_runs_of_the_demo(demo_runs: Path) -> None:
    store = Store(demo_runs)
    folders = [store.folder(result.id) for result in store.of_experiment("embedded")]
    pairs = compare(folders)["pairs"]
    best = {frozenset((pair["a"], pair["b"])): pair for pair in pairs if pair["metric"] == "macro_f1"}
    assert best.keys() == {frozenset(pair) for pair in itertools.combinations(("prior", "keywords", "nb"), 2)}
    pair = best[frozenset(("prior", "nb"))]
    assert pair["verdict"] == ("a_better" if pair["a"] == "nb" else "b_better")
    f1 = {result.classifier: result.metrics["macro_f1"] for result in store.results()}
    assert all(p["difference"] == pytest.approx(f1[p["a"]] - f1[p["b"]]) for p in best.values())
