"""Languages: which one a text is in, which part of it is English, and what becomes of the rest."""

import subprocess
import sys
from pathlib import Path

import pytest

from abstag.files import read_json
from abstag.ingest import CleanRecord, cleaned, ingest, manifest_summary
from abstag.languages import english, foreign, words
from abstag.records import Record
from abstag.tagger import Tagger
from abstag.taxonomy import load_taxonomy

ENGLISH = (
    "We teach a robot to fold towels from a single video of a person. The folds are straight, and the robot needs no "
    "map of the room."
)
CHINESE = (
    "我们教机器人从一段视频中学习折叠毛巾。折叠是直的，机器人不需要房间的地图。我们在三个房间里进行了试验，该方法有效。"
)
GERMAN = (
    "Wir lehren einen Roboter, Handtücher nach einem einzigen Video zu falten. Die Falten sind gerade, und der Roboter "
    "braucht keine Karte für den Raum. Das Verfahren lässt sich auf andere Stoffe übertragen."
)
FRENCH = (
    "Nous apprenons à un robot à plier des serviettes à partir d'une seule vidéo. Les plis sont droits et le robot n'a "
    "pas besoin d'une carte de la pièce. La méthode s'étend à d'autres étoffes sans être adaptée."
)
RUSSIAN = (
    "Мы учим робота складывать полотенца по одному видео. Складки получаются прямыми, и роботу не нужна карта комнаты. "
    "Метод переносится на другие ткани без дополнительной настройки и без разметки данных."
)
ARABIC = (
    "نعلم روبوتا طي المناشف من مقطع فيديو واحد. الطيات مستقيمة ولا يحتاج الروبوت إلى خريطة للغرفة. تنتقل الطريقة إلى "
    "أقمشة أخرى دون أي ضبط إضافي أو بيانات موسومة من قبل البشر."
)


def _clean(abstract: str) -> CleanRecord:
    found = cleaned(Record("f", 1, 1, abstract, "Towels"))
    assert isinstance(found, CleanRecord)
    return found


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("zh", CHINESE),
        ("de", GERMAN),
        ("fr", FRENCH),
        ("ru", RUSSIAN),
        ("ar", ARABIC),
        ("zh", "我们提出 FoldNet，一种折叠毛巾的 Transformer。"),
    ],
)
def test_another_language_is_known_and_kept(code: str, text: str) -> None:
    assert _clean(text).language == code


@pytest.mark.parametrize(
    "text",
    [
        ENGLISH,
        "Towel folding methods: review, benchmarks, datasets, future directions",
        "def fold(x): return x + 1 for i in range(10)",
        "x^2 + y_i = 0, f(x) → R^n, O(n log n), λ ≥ μ, Σ α_i",
        "LSTM GRU BERT ResNet GAN VAE",
    ],
)
def test_english_code_and_formulas_are_no_other_language(text: str) -> None:
    assert foreign(text) is None


@pytest.mark.parametrize(
    "text",
    [
        f"[Abstract] {ENGLISH} [摘要] {CHINESE}",
        f"摘要：{CHINESE}\nAbstract: {ENGLISH}",
        f"{ENGLISH}\n\n{CHINESE}",
        f"{CHINESE} {ENGLISH}",
        f"{GERMAN}\n{ENGLISH}",
        f"{ENGLISH} {GERMAN}",
        f"Résumé. {FRENCH} Abstract. {ENGLISH}",
        f"Abstract: {ENGLISH} Résumé: {FRENCH}",
        f"{RUSSIAN} {ENGLISH}",
        f"{ARABIC}\n{ENGLISH}",
        f"Abstract: {ENGLISH}\nKeywords: robots\n摘要: {CHINESE} 关键词：机器人",
    ],
)
def test_of_two_languages_the_english_text_is_taken(text: str) -> None:
    found = _clean(text)
    assert (found.abstract, found.language) == (ENGLISH, None)


@pytest.mark.parametrize(
    "text",
    [
        f"{ENGLISH} The word 毛巾 means towel, полотенце too, and Handtücher für alle.",
        f"Der Titel ist für die Füße. {ENGLISH}",
        "We fold towels. " + CHINESE,
    ],
)
def test_a_few_words_of_another_language_change_nothing(text: str) -> None:
    assert english(text) == text


def test_signs_without_blanks_are_counted_as_words() -> None:
    assert words(CHINESE) > 20
    found = cleaned(Record("f", 1, 1, "折叠毛巾。"))
    assert not isinstance(found, CleanRecord)
    assert found.reason == "too short"


def test_ingest_counts_languages_and_keeps_the_records(tmp_path: Path) -> None:
    (tmp_path / "dump.txt").write_text(
        "\n\n".join(["ICLR 2024 Papers", ENGLISH, GERMAN, CHINESE, RUSSIAN, GERMAN + " Ja."])
    )
    manifest = ingest([str(tmp_path / "dump.txt")], tmp_path / "out", taxonomy=load_taxonomy(None))
    assert manifest["records"] == 5
    assert manifest["languages"] == {"de": 2, "zh": 1, "ru": 1}
    assert read_json(tmp_path / "out" / "manifest.json")["languages"] == manifest["languages"]
    assert "not English: 2 German, 1 Chinese, 1 Russian" in manifest_summary(manifest)


def test_the_tagger_leaves_other_languages_to_review_with_their_scores() -> None:
    german, own = Tagger.load().tag([("Diffusion models", GERMAN), ENGLISH])
    assert (german["decision"], german["areas"], german["reason"]) == ("review", [], "not English: German")
    assert set(german["scores"]) == set(own["scores"])
    assert "not English" not in str(own["reason"])


def test_the_library_is_asked_only_of_what_may_not_be_english() -> None:
    code = (
        f"import sys; from abstag.languages import foreign; assert foreign({ENGLISH!r}) is None; "
        f"assert 'py3langid' not in sys.modules; assert foreign({GERMAN!r}) == 'de'; assert 'py3langid' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
