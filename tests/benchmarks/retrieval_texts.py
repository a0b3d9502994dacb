"""The texts of the retrieval benchmark: questions with known answers, and a large vault of real sentences."""

import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

QUESTIONS = Path(__file__).parent / "questions/debian-faq.json"
BLOCKS_A_NOTE = 10
SENTENCES_A_BLOCK = (2, 4)
FOLDERS = 50
CHINESE = re.compile(r"[\u4e00-\u9fff]")


@dataclass(frozen=True, slots=True)
class Answer:
    """A text that answers a question; ``key`` is shared by its translations."""

    language: str
    key: str
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the key of its answer."""

    text: str
    language: str
    key: str


def load_questions() -> tuple[list[Answer], list[Question]]:
    """Return all answers and questions."""
    document = json.loads(QUESTIONS.read_text(encoding="utf-8"))
    answers = [Answer(item["language"], item["key"], item["text"]) for item in document["notes"]]
    questions = [
        Question(item["question"], item["language"], item["note"]) for item in document["questions"]
    ]
    return answers, questions


def write_answers(folder: Path, answers: list[Answer]) -> None:
    """Write each answer as a note whose name says nothing about it."""
    for answer in answers:
        target = folder / answer.language / f"{answer.key}.md"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(answer.text, encoding="utf-8")


def sentences() -> tuple[list[str], list[str]]:
    """Return real English and Chinese sentences, in the order of their texts.

    English ones come from the FAQ and from the reference that Python carries, Chinese ones from the FAQ.
    """
    from pydoc_data.topics import topics

    answers, _ = load_questions()
    chinese = [s for answer in answers if answer.language == "zh" for s in _chinese(answer.text)]
    english = [s for answer in answers if answer.language == "en" for s in _english(answer.text)]
    for topic in topics.values():
        english += _english(topic)
    return english, chinese


def _english(text: str) -> Iterator[str]:
    flat = re.sub(r"\s+", " ", re.sub(r"```.*?```", " ", text, flags=re.DOTALL))
    for sentence in re.split(r"(?<=[.!?])\s+", flat):
        if 30 < len(sentence) < 400:
            yield sentence


def _chinese(text: str) -> Iterator[str]:
    flat = re.sub(r"\s+", " ", re.sub(r"```.*?```", " ", text, flags=re.DOTALL))
    for sentence in re.split(r"(?<=[。！？])", flat):
        if 12 < len(sentence) < 300 and CHINESE.search(sentence):
            yield sentence.strip()


def build_vault(folder: Path, notes: int, seed: int = 1) -> int:
    """Write *notes* notes of ten paragraphs, half of them Chinese; returns their bytes.

    A paragraph is a run of sentences as they follow each other in a real text; which runs come
    together in a note is drawn at random.
    """
    draw = random.Random(seed)
    english, chinese = sentences()
    size = 0
    for number in range(notes):
        pool, glue = (chinese, "") if number % 2 else (english, " ")
        parts = []
        for block in range(BLOCKS_A_NOTE):
            count = draw.randint(*SENTENCES_A_BLOCK)
            start = draw.randrange(len(pool) - count)
            if block % 3 == 0:
                heading = pool[draw.randrange(len(pool))]
                parts.append("## " + heading[: 20 if number % 2 else 50])
            parts.append(glue.join(pool[start : start + count]))
        text = f"# Note {number}\n\n" + "\n\n".join(parts) + "\n"
        target = folder / f"folder {number % FOLDERS}" / f"note {number}.md"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        size += len(text.encode())
    return size


def draw_queries(count: int, seed: int = 2) -> list[str]:
    """Return what people type: single words, pairs of words, Chinese words and phrases, and questions."""
    draw = random.Random(seed)
    english, chinese = sentences()
    _, questions = load_questions()
    queries: list[str] = []
    while len(queries) < count:
        words = [w for w in re.findall(r"[A-Za-z]{4,}", draw.choice(english)) if w.islower()]
        characters = "".join(CHINESE.findall(draw.choice(chinese)))
        kind = len(queries) % 5
        if kind == 0 and words:
            queries.append(draw.choice(words))
        elif kind == 1 and len(words) > 1:
            queries.append(" ".join(draw.sample(words, 2)))
        elif kind in (2, 3) and len(characters) > 6:
            length = 2 if kind == 2 else draw.randint(3, 5)
            start = draw.randrange(len(characters) - length)
            queries.append(characters[start : start + length])
        elif kind == 4:
            queries.append(draw.choice(questions).text)
    return queries
