"""Prints src/generation/unicode_tables.cpp from Python's tables of Unicode: categories, and what NFC needs.

python tools/print_unicode.py
"""

import sys
import unicodedata
from pathlib import Path

TARGET = Path(__file__).resolve().parents[1] / "src" / "generation" / "unicode_tables.cpp"
CATEGORIES = (
    "Cn Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co".split()
)
HANGUL = range(0xAC00, 0xD7A4)  # composed by arithmetic


def runs(value_of):
    """(first code point, value) wherever the value changes."""
    found, last = [], 0
    for code in range(sys.maxunicode + 1):
        value = value_of(chr(code))
        if value != last:
            found.append((code, value))
            last = value
    return found


def decompositions():
    """(composed, first, second or 0, whether NFC composes them again)"""
    for code in range(sys.maxunicode + 1):
        text = unicodedata.decomposition(chr(code))
        if not text or text.startswith("<") or code in HANGUL:
            continue
        parts = [int(part, 16) for part in text.split()]
        composes = len(parts) == 2 and unicodedata.normalize("NFC", chr(parts[0]) + chr(parts[1])) == chr(
            code
        )
        yield code, parts[0], parts[1] if len(parts) == 2 else 0, composes


def table(name, numbers):
    lines, line = [], "   "
    for number in numbers:
        word = f" {number:#x}," if number > 9 else f" {number},"
        if len(line) + len(word) > 110:
            lines.append(line)
            line = "   "
        line += word
    body = "\n".join([*lines, line])
    own = name[1:].lower()
    view = f"constinit const std::span<const uint32_t> {name}({own});"
    return f"constexpr uint32_t {own}[] = {{\n{body}\n}};\n{view}\n"


def main():
    categories = [
        code << 5 | value for code, value in runs(lambda c: CATEGORIES.index(unicodedata.category(c)))
    ]
    classes = [code << 8 | value for code, value in runs(unicodedata.combining)]
    parts = [n for code, a, b, composes in decompositions() for n in (code << 1 | composes, a, b)]
    TARGET.write_text(
        f"// Printed by tools/print_unicode.py: Unicode {unicodedata.unidata_version}.\n"
        '#include "generation/unicode.h"\n\n'
        "// clang-format off\n"
        "namespace rushlight::generation::unicode {\n\n"
        + table("kCategoryRuns", categories)
        + "\n"
        + table("kCombiningRuns", classes)
        + "\n"
        + table("kDecompositions", parts)
        + "\n}  // namespace rushlight::generation::unicode\n"
    )
    print(f"{TARGET.name}: {len(categories)} categories, {len(classes)} classes, {len(parts) // 3} pairs")


if __name__ == "__main__":
    main()
