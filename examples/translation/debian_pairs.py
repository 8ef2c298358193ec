#!/usr/bin/env python3
"""Parallel text from Debian's package descriptions: the English ones and their translations, sentence by sentence.

    debian_pairs.py TRANSLATION-en TRANSLATION-de FOLDER

reads two indices of translations (Debian's dists/*/main/i18n/Translation-*, unpacked) and writes FOLDER/PART.source.txt and FOLDER/PART.target.txt, as many
documents in both with <|endoftext|> between them, for train, validation and test. Sentences are paired where a paragraph has as many in both languages. The
part is chosen by the beginning of the package's name, so that relatives, whose descriptions are much alike, are in one part; what training has, too, is taken
out of the other parts. Nothing is random.
"""
import hashlib
import re
import sys
from pathlib import Path

SEPARATOR = "<|endoftext|>"


def descriptions(path):
    """{md5: (package, short description, long description)}"""
    found = {}
    for block in Path(path).read_text(encoding="utf8").split("\n\n"):
        package = re.search(r"^Package: (\S+)", block, re.M)
        md5 = re.search(r"^Description-md5: (\S+)", block, re.M)
        text = re.search(r"^Description-(?!md5)\w+: (.*)\n?((?: .*\n?)*)", block, re.M)
        if package and md5 and text:
            found[md5[1]] = (package[1], text[1].strip(), text[2])
    return found


def sentences(long):
    """Of each paragraph; none of lists and of what is laid out."""
    for paragraph in re.split(r"^ \.?\s*$", long, flags=re.M):
        lines = [line[1:] for line in paragraph.splitlines() if line.strip()]
        laid_out = any(line.startswith(" ") for line in lines)
        yield [] if laid_out else re.split(r"(?<=[.!?]) (?=[A-ZÄÖÜ])", " ".join(lines))


def pairs_of(english, other):
    yield english[1], other[1]
    paragraphs = list(sentences(english[2])), list(sentences(other[2]))
    if len(paragraphs[0]) != len(paragraphs[1]):
        return
    for a, b in zip(*paragraphs):
        if len(a) == len(b):
            yield from zip(a, b)


def part_of(package):
    stem = re.match(r"(?:lib)?[a-z]{0,4}", package)[0]
    number = int(hashlib.sha256(stem.encode()).hexdigest(), 16) % 100
    return "test" if number < 3 else "validation" if number < 6 else "train"


def main():
    english, other = descriptions(sys.argv[1]), descriptions(sys.argv[2])
    folder = Path(sys.argv[3])
    parts = {"train": {}, "validation": {}, "test": {}}
    for md5 in sorted(other.keys() & english.keys()):
        for pair in pairs_of(english[md5], other[md5]):
            a, b = (" ".join(text.split()) for text in pair)
            if a and b and a != b:
                parts[part_of(english[md5][0])].setdefault(a, b)  # one translation of each
    for part in ("validation", "test"):
        parts[part] = {a: b for a, b in parts[part].items() if a not in parts["train"]}
    if not parts["train"]:
        raise ValueError("the two files have no descriptions in common: expected dists/*/main/i18n/Translation-en and that of another language, unpacked")
    folder.mkdir(parents=True, exist_ok=True)
    for part, pairs in parts.items():
        print(f"{part}: {len(pairs)} pairs")
        for side, texts in (("source", pairs.keys()), ("target", pairs.values())):
            (folder / f"{part}.{side}.txt").write_text(SEPARATOR.join(texts), encoding="utf8")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("debian_pairs.py: usage: debian_pairs.py TRANSLATION-en TRANSLATION-de FOLDER")
    try:
        main()
    except (OSError, ValueError) as error:
        sys.exit(f"debian_pairs.py: {error}")
