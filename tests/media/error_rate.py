"""How far a transcript is from what was said."""


def letters(text: str) -> str:
    """Return what counts of a text: letters and digits in lower case."""
    return "".join(character for character in text.casefold() if character.isalnum())


def character_error_rate(said: str, heard: str) -> float:
    """Return the share of characters that were heard wrongly; punctuation and blanks don't count."""
    return _distance(letters(said), letters(heard)) / len(letters(said))


def word_error_rate(said: str, heard: str) -> float:
    """Return the share of words that were heard wrongly; punctuation and case don't count."""
    spoken, written = (
        [word for part in text.split() if (word := letters(part))] for text in (said, heard)
    )
    return _distance(spoken, written) / len(spoken)


def _distance(expected: str | list[str], found: str | list[str]) -> int:
    row = list(range(len(found) + 1))
    for number, wanted in enumerate(expected, 1):
        after = [number]
        for index, got in enumerate(found, 1):
            after.append(min(row[index] + 1, after[-1] + 1, row[index - 1] + (wanted != got)))
        row = after
    return row[-1]
