"""Prints unicode_tables.cc: how the tokenizers library sees each character, asked of the library itself.

    python make_unicode_tables.py ONIG_CATEGORIES NORMALIZED > unicode_tables.cc

Its parts follow Unicode versions of their own, from 8 to 17. The two files say what the packaged libraries do: for every category of
two letters a line of the code points that Oniguruma puts there, and for every code point a line of what utf8proc makes of it
(lower case, then NFC, NFD, NFKC, NFKD of the character and of "a" c U+0301 U+0323 c U+3099).
"""

import sys

from tokenizers import Regex, __version__, normalizers, pre_tokenizers

CHARS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
STEP = 4096


def ranges(chars):
    out = []
    for c in sorted(chars):
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def chunks():
    for i in range(0, len(CHARS), STEP):
        yield CHARS[i:i + STEP]


def matched(regex):
    split, out = pre_tokenizers.Split(Regex(regex), "removed"), set()
    for chars in chunks():
        kept = set()
        for _, (begin, end) in split.pre_tokenize_str("".join(map(chr, chars))):
            kept.update(range(begin, end))
        out.update(c for i, c in enumerate(chars) if i not in kept)
    return out


def alone(pre_tokenizer):
    out = set()
    for chars in chunks():
        pieces = {b for _, (b, e) in pre_tokenizer.pre_tokenize_str("".join(f"a{chr(c)}a" for c in chars)) if e == b + 1}
        out.update(c for i, c in enumerate(chars) if 3 * i + 1 in pieces)
    return out


def words():
    out, pre_tokenizer = set(), pre_tokenizers.Whitespace()
    for chars in chunks():
        pieces = {place for _, place in pre_tokenizer.pre_tokenize_str("".join(f" a{chr(c)}a" for c in chars))}
        out.update(c for i, c in enumerate(chars) if (4 * i + 1, 4 * i + 4) in pieces)
    return out


def removed(normalizer):
    return {c for c in CHARS if not normalizer.normalize_str(chr(c))}


def bert(**options):
    return normalizers.BertNormalizer(**({"clean_text": False, "handle_chinese_chars": False, "strip_accents": False, "lowercase": False} | options))


def table(name, chars, comment):
    print(f"// {comment}")
    print(f"const CharRange {name}[] = {{")
    row = "   "
    for begin, end in ranges(chars):
        item = f" {{0x{begin:X}, 0x{end:X}}},"
        if len(row) + len(item) > 100:
            print(row)
            row = "   "
        row += item
    print(row)
    print("};")
    print(f"const std::size_t {name}Size = std::size({name});\n")


# A character of each category, old enough for every version, of 3 and of 4 bytes.
STAND_INS = {
    "Lu": (0x1E9E, 0x1D400), "Ll": (0x1D00, 0x1D41A), "Lm": (0x1D2C, 0x16F93), "Lo": (0x0E01, 0x10280), "Mn": (0x0E31, 0x1D167), "Mc": (0x0903, 0x1D165),
    "Nd": (0x0E50, 0x104A0), "Nl": (0x2CEF, 0x10140), "No": (0x0F2A, 0x10107), "Po": (0x0E4F, 0x10100), "Pd": (0x2010, 0x10EAD),
    "Sm": (0x2200, 0x1D6C1), "Sc": (0x0E3F, 0x1E2FF), "So": (0x2300, 0x1F600), "Sk": (0x1FBD, 0x1F3FB), "Cf": (0x200B, 0x110BD), "Cn": (0x2FE0, 0x1FFFE), "Co": (0xE000, 0xF0000),
}


def main():
    onig = {}
    for line in open(sys.argv[1]):
        name, *chars = line.split()
        onig[name] = {int(c, 16) for c in chars}
    print("""// Made by make_unicode_tables.py.

#include "xylem/models/tokenizers/internal/unicode_tables.h"

#include <iterator>

namespace xylem::models::internal {
""")
    print(f"// As tokenizers {__version__} sees characters.\n")
    table("kNumeric", alone(pre_tokenizers.Digits(True)), "What Digits cuts.")
    table("kPunctuation", alone(pre_tokenizers.Punctuation("isolated")), "What Punctuation cuts.")
    table("kMark", removed(normalizers.StripAccents()), "What StripAccents takes away.")
    table("kNonspacing", removed(bert(strip_accents=True)), "What BertNormalizer takes for accents.")
    table("kControl", removed(bert(clean_text=True)), "What BertNormalizer cleans away.")
    table("kWord", words(), "Word characters of Whitespace and of single_word.")

    han = matched(r"\p{Han}") - onig["Han"]
    stand = []
    for category, packaged in onig.items():
        if category == "Han":
            continue
        for begin, end in ranges(matched(rf"\p{{{category}}}") - packaged - han):
            assert begin >= 0x800, hex(begin)
            stand.append((begin, end, STAND_INS[category][begin >= 0x10000]))
    stand += [(begin, end, 0x4E00 if end < 0x10000 else 0x20000) for begin, end in ranges(han)]
    print("// Characters that the packaged Oniguruma does not know, and one that it puts into their category.")
    print("const StandIn kStandIns[] = {")
    for begin, end, c in sorted(stand):
        print(f"    {{0x{begin:X}, 0x{end:X}, 0x{c:X}}},")
    print("};\nconst std::size_t kStandInsSize = std::size(kStandIns);\n")

    forms = (normalizers.NFC(), normalizers.NFD(), normalizers.NFKC(), normalizers.NFKD())
    lowercase = normalizers.Lowercase()
    inert, lower = set(), []
    for c, line in zip(CHARS, open(sys.argv[2]), strict=True):
        small, *normalized = line.split()
        theirs = lowercase.normalize_str(chr(c))
        if c != 0x130 and theirs != chr(int(small, 16)):
            lower.append((c, ord(theirs)))
        context = f"a{chr(c)}\u0301\u0323{chr(c)}\u3099"
        for form, alone_, around in zip(forms, normalized[::2], normalized[1::2], strict=True):
            if form.normalize_str(chr(c)).encode().hex() != alone_ or form.normalize_str(context).encode().hex() != around:
                inert.add(c)
    for c in inert:
        for form in forms:
            assert form.normalize_str(chr(c)) == chr(c), hex(c)
            assert form.normalize_str(f"a{chr(c)}\u0301\u0323{chr(c)}\u3099") == f"a{chr(c)}\u0323\u0301{chr(c)}\u3099", hex(c)
    table("kInert", inert, "What normal forms leave as it is, though utf8proc would not.")
    print("// Lower case where it is not utf8proc's.")
    print("const StandIn kLower[] = {")
    for c, small in lower:
        print(f"    {{0x{c:X}, 0x{c:X}, 0x{small:X}}},")
    print("};\nconst std::size_t kLowerSize = std::size(kLower);\n")
    print("}  // namespace xylem::models::internal")


main()
