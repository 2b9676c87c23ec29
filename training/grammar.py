"""The project's own story grammar: many small plots, few certain words.

    python grammar.py 5 --seed 1     # print five stories
    python grammar.py 5 --plot NAME  # of one plot

The grammar itself is data. `plots/words.txt` has the word lists and the shared phrases;
every other file of `plots/` has plots. Each plot casts its people, animals and things once
and mentions them again and again, so that a model can learn to keep a story together;
everything else is a choice between several ways to say it, so that it can't learn a story
by heart.

A plot::

    plot: lost-thing
    cast: hero=child, thing=toy, place=place
    {hero} took the {thing} {place.to}.       a line is always told
    ? It was {weather}.                       or half of the time
    | {Hero.he} lost it.                      or is one of the neighbouring | lines
    | The wind took it.
    / {feeling}                               (a group next to another begins with /)
    | {thought}
                                              a blank line may end a paragraph
    --                                        and this one always does
    - a {thing}                               an item of a list is a line by itself

Inside a line:

- `[a|b|]` is one of the choices, here perhaps nothing;
- `(a)` is told half of the time;
- `{name}` is a member of the cast, or something new from a list of that name, and
  `{name.his}` one of its attributes; with a capital, `{Name}`, its first letter is one too;
- `<{name}: Text.>` is direct speech, phrased in one of several ways;
- a backslash keeps the next character as it is.

`a` becomes `an` where it should.
"""

from __future__ import annotations

import argparse
import random
import re
from pathlib import Path

PLOTS = Path(__file__).resolve().parent / "plots"
FEMALE = {"he": "she", "him": "her", "his": "her", "himself": "herself"}
MALE = {"he": "he", "him": "him", "his": "his", "himself": "himself"}
NEUTER = {"he": "it", "him": "it", "his": "its", "himself": "itself"}
PRONOUNS = {"I", "he", "she", "it", "they", "we"}
SPEECH_VERBS = {
    ".": ["said"] * 8 + ["answered", "whispered"],
    "?": ["asked", "asked", "asked", "said", "wondered"],
    "!": ["said", "cried", "called", "shouted"],
}
VOWEL_AFTER_A = re.compile(r"\b([Aa]) (?=(?!one\b|once|uni|use|used|eu)[aeiou])", re.IGNORECASE)
SENTENCE_START = re.compile(r'(^"?|[.!?]\s+|\."\s+|[.!?]\s+"|\n\s*"?)([a-z])')


class GrammarError(ValueError):
    """A line that can't be read, or a name that nothing defines."""


class Template:
    """A parsed line: a list of strings and of nodes `(kind, ...)`."""

    def __init__(self, source: str) -> None:
        self.source, self.at = source, 0
        self.nodes = self._sequence("")
        if self.at != len(source):
            raise GrammarError(f"unexpected {source[self.at]!r} in: {source}")

    def _sequence(self, ends: str) -> list:
        nodes: list = []
        while self.at < len(self.source) and self.source[self.at] not in ends:
            mark = self.source[self.at]
            self.at += 1
            if mark == "[":
                choices = [self._sequence("|]")]
                while self._take() == "|":
                    choices.append(self._sequence("|]"))
                nodes.append(("choice", choices))
            elif mark == "(":
                nodes.append(("choice", [self._sequence(")"), []]))
                self._take()
            elif mark == "{":
                close = self.source.index("}", self.at)
                nodes.append(("name", self.source[self.at : close]))
                self.at = close + 1
            elif mark == "<":
                speaker = self._sequence(":")
                self._take()
                nodes.append(("speech", speaker, self._sequence(">")))
                self._take()
            elif mark == "\\":
                nodes.append(self._take())
            else:
                nodes.append(mark)
        return nodes

    def _take(self) -> str:
        if self.at >= len(self.source):
            raise GrammarError(f"something is left open in: {self.source}")
        self.at += 1
        return self.source[self.at - 1]


class Plot:
    """A name, a cast and beats: a beat is a group of alternatives, or a break."""

    def __init__(self, name: str, cast: str, lines: list[str]) -> None:
        self.name = name
        self.cast = [tuple(part.strip().split("=")) for part in cast.split(",") if part.strip()]
        self.beats: list[list[Template] | str] = []
        grouping = False
        for line in lines:
            if not line:
                self.beats.append("maybe break")
            elif line == "--":
                self.beats.append("break")
            elif line.startswith("/ "):
                self.beats.append([Template(line[2:])])
            elif line.startswith("| ") and grouping:
                self.beats[-1].append(Template(line[2:]))
            elif line.startswith("? "):
                self.beats.append([Template(line[2:]), Template("")])
            else:
                self.beats.append([Template(line.removeprefix("| "))])
            grouping = line.startswith(("| ", "/ "))


class Grammar:
    """Word lists and plots, read from `plots/`."""

    def __init__(self, folder: Path = PLOTS) -> None:
        self.lists: dict[str, list[tuple[Template, dict[str, str]]]] = {}
        self.plots: list[Plot] = []
        self._read_lists((folder / "words.txt").read_text(encoding="ascii"))
        for path in sorted(folder.glob("*.txt")):
            if path.name != "words.txt":
                self._read_plots(path.read_text(encoding="ascii"))

    def _read_lists(self, text: str) -> None:
        """`name: a, b, c` on one line, or `name:` and one phrase an indented line.

        An entry may carry attributes: `beach; at=on the beach; to=to the beach`.
        """
        entries: list = []
        for line in text.splitlines():
            if not line.strip() or line.startswith("#"):
                continue
            if line.startswith(" "):
                found = [line.strip()]
            else:
                name, _, rest = line.partition(":")
                entries = self.lists.setdefault(name, [])
                found = [part.strip() for part in rest.split(",") if part.strip()]
            for entry in found:
                head, *attributes = entry.split("; ")
                pairs = dict(attribute.split("=", 1) for attribute in attributes)
                entries.append((Template(head), pairs))

    def _read_plots(self, text: str) -> None:
        for block in re.split(r"^plot: ", text, flags=re.MULTILINE)[1:]:
            name, cast, *lines = [line.strip() for line in block.strip().splitlines()]
            if not cast.startswith("cast:"):
                raise GrammarError(f"plot {name} does not begin with its cast")
            self.plots.append(Plot(name, cast.removeprefix("cast:"), lines))

    def story(self, dice: random.Random, plot: Plot | None = None) -> str:
        plot = plot or dice.choice(self.plots)
        return Telling(self, dice, plot).text()


class Telling:
    """One story being told: the grammar, the dice and the cast."""

    def __init__(self, grammar: Grammar, dice: random.Random, plot: Plot) -> None:
        self.grammar, self.dice, self.plot = grammar, dice, plot
        self.cast: dict[str, dict[str, str]] = {}
        taken: set[str] = set()
        for name, kind in plot.cast:
            member = self._draw(kind)
            while member[""] in taken:
                member = self._draw(kind)
            taken.add(member[""])
            self.cast[name] = member

    def text(self) -> str:
        paragraphs = self.dice.random() < 0.4
        parts: list[str] = []
        for beat in self.plot.beats:
            if isinstance(beat, list):
                told = self._tell(self.dice.choice(beat).nodes)
                parts.append(f"\n{told}" if told.startswith("- ") else f"{told} ")
            elif beat == "break" or paragraphs:
                parts.append("\n\n")
        return self._with_pronouns(tidy("".join(parts)))

    def _with_pronouns(self, text: str) -> str:
        """Says "she" for a person now and then, where the sentence before was about her too."""
        for person in self.cast.values():
            name, he = re.escape(person[""]), person["he"].capitalize()
            if he == "It":
                continue
            again = re.compile(rf'(?<=[.!?] )({name}) ([^".!?]+[.!?]) {name} (?!and )')
            replace = lambda m: (
                f"{m[1]} {m[2]} {he} " if self.dice.random() < 0.7 else m[0]
            )
            text = again.sub(replace, again.sub(replace, text))
        return text

    def _draw(self, kind: str) -> dict[str, str]:
        """Something from a list, as attributes; the empty attribute is what it is called."""
        if kind in ("child", "adult"):
            return self._person(kind)
        if kind not in self.grammar.lists:
            raise GrammarError(f"plot {self.plot.name}: no list is called {kind!r}")
        head, attributes = self.dice.choice(self.grammar.lists[kind])
        base = NEUTER | {k: self._tell(Template(v).nodes) for k, v in attributes.items()}
        if base["he"] == "she":
            base = FEMALE | {k: v for k, v in base.items() if k not in FEMALE}
        elif base["he"] == "he":
            base = MALE | {k: v for k, v in base.items() if k not in MALE}
        word = self._tell(head.nodes)
        return {"": word, "the": f"the {word}"} | base

    def _person(self, kind: str) -> dict[str, str]:
        female = self.dice.random() < 0.5
        name = self._draw("girl" if female else "boy")[""]
        noun = {"child": ("girl", "boy"), "adult": ("woman", "man")}[kind][not female]
        if kind == "adult" and self.dice.random() < 0.3:
            name = ("Mrs. " if female else "Mr. ") + self._draw("surname")[""]
        return {"": name, "noun": noun} | (FEMALE if female else MALE)

    def _tell(self, nodes: list) -> str:
        told = []
        for node in nodes:
            if isinstance(node, str):
                told.append(node)
            elif node[0] == "choice":
                told.append(self._tell(self.dice.choice(node[1])))
            elif node[0] == "name":
                told.append(self._name(node[1]))
            else:
                told.append(self._speech(self._tell(node[1]), self._tell(node[2]).strip()))
        return "".join(told)

    def _name(self, reference: str) -> str:
        name, _, attribute = reference.partition(".")
        key = name[0].lower() + name[1:]
        member = self.cast.get(key) or self._draw(key)
        if attribute not in member:
            raise GrammarError(f"plot {self.plot.name}: {key} has no {attribute!r}")
        word = member[attribute]
        return word[0].upper() + word[1:] if name[0].isupper() else word

    def _speech(self, speaker: str, text: str) -> str:
        text = re.sub(r"\s+", " ", text)
        if not speaker:
            return f'"{text}"'
        capital = speaker[0].upper() + speaker[1:]
        first, _, rest = split_sentence(text)
        verb = self.dice.choice(SPEECH_VERBS[(first if rest else text)[-1]])
        said = f"{speaker} {verb}" if speaker in PRONOUNS or self.dice.random() < 0.25 else (
            f"{verb} {speaker}"
        )
        comma = lambda part: part[:-1] + "," if part.endswith(".") else part
        form = self.dice.random()
        if rest and form < 0.45:
            return f'"{comma(first)}" {said}. "{rest}"'
        if form < 0.75:
            return f'"{comma(text)}" {said}.'
        return f'{capital} {verb}, "{text}"'


def split_sentence(text: str) -> tuple[str, str, str]:
    """The first sentence of a text, the space after it, and the rest."""
    end = re.search(r"(?<!Mr)(?<!Mrs)[.!?](\s+)", text)
    if not end:
        return text, "", ""
    return text[: end.start() + 1], end.group(1), text[end.end() :]


def tidy(text: str) -> str:
    text = re.sub(r"[ \t]+", " ", text)
    text = re.sub(r" ?\n ?", "\n", text)
    text = re.sub(r"\n{3,}", "\n\n", text)
    text = re.sub(r" ([,.!?;:])", r"\1", text)
    text = VOWEL_AFTER_A.sub(r"\1n ", text)
    text = SENTENCE_START.sub(lambda m: m.group(1) + m.group(2).upper(), text)
    return text.strip()


def stories(count: int, seed: int) -> list[str]:
    """So many different stories, every plot as often as the others."""
    grammar, dice = Grammar(), random.Random(seed)
    told: dict[str, None] = {}
    while len(told) < count:
        told[grammar.story(dice)] = None
    return list(told)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plot", help="the name of the only plot to tell")
    arguments = parser.parse_args()
    grammar, dice = Grammar(), random.Random(arguments.seed)
    plots = [plot for plot in grammar.plots if arguments.plot in (None, plot.name)]
    for _ in range(arguments.count):
        print(grammar.story(dice, dice.choice(plots)), end="\n\n----\n\n")


if __name__ == "__main__":
    main()
