"""The draft as it is drawn: pastes folded to a marker each. One character of the draft, one marker on the screen."""

from bisect import bisect_right
from collections.abc import Callable, Sequence

from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.layout.utils import explode_text_fragments


class Folded(Processor):
    """A processor of prompt_toolkit that writes what `shown` gives for a character, where it gives something."""

    def __init__(self, shown: Callable[[str], str | None]) -> None:
        self._shown = shown

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        pieces = explode_text_fragments(transformation_input.fragments)
        words = [self._shown(piece[1]) for piece in pieces]
        if not any(words):
            return Transformation(transformation_input.fragments)
        drawn: StyleAndTextTuples = []
        starts: list[int] = []
        column = 0
        for piece, word in zip(pieces, words, strict=True):
            starts.append(column)
            drawn.append(("class:paste", word) if word else piece)
            column += len(word or piece[1])
        return Transformation(drawn, *_mappings(starts, column))


def _mappings(starts: Sequence[int], end: int) -> tuple[Callable[[int], int], Callable[[int], int]]:
    """From a place in the line to its column, and back; `starts` are the columns of the characters."""

    def to_column(place: int) -> int:
        return starts[place] if place < len(starts) else end + place - len(starts)

    def to_place(column: int) -> int:
        return bisect_right(starts, column) - 1 if column < end else len(starts) + column - end

    return to_column, to_place
