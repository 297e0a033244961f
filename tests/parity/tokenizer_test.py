"""Tokenizers that the tokenizers library trains here, and their ids for texts of all kinds."""

import json
import random
import subprocess

import built
import pytest
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

TOOL = built.tool("parity", "tokenizer")
CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
TAIL = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}" + TAIL
QWEN2 = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}" + TAIL
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+" + CONTRACTIONS + "?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*" + CONTRACTIONS + "?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK3 = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"
             r"|\s*[\r\n]+|\s+(?!\S)|\s+")
SAMPLE = """In the beginning God created the heaven and the earth. And the earth was without form, and void;
def fib(n):\n\tif n < 2:\n\t\treturn n  # don't recurse\n    return fib(n-1) + fib(n-2)\r\n\r\n
Ceci n'est pas une pipe : l'été à Besançon, où l'œuvre naïve coûte 1 234,56 €.  Straße, ÄÖÜ, ﬁn, Ⅳ, ½.
Привет, мир! Это — проверка. Γειά σου Κόσμε. שלום עולם. مرحبا بالعالم ١٢٣. नमस्ते दुनिया १२३
你好，世界。これはテストです。한국어 문장입니다. ไทยไม่มีช่องว่าง 😀👩‍👩‍👧‍👦🇩🇪 e\u0301\u0323 \u1e9b\u0323 A\u030a
I'm you're WE'LL they'd It's it'S 12345678 3.14159 $%&/()=? <|user|>hello<|end|>   three   spaces\t\ttabs
"""


def level(**options):
    return pre_tokenizers.ByteLevel(**options)


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Split(Regex(pattern), behavior, invert)


def make(pre=None, normalizer=None, decoder=None, post=None, vocab=600, added=(), special=("<|end|>", "<|user|>"), **options):
    """A trained tokenizer; ByteLevel's characters all in its alphabet."""
    train = {key: options.pop(key) for key in ("continuing_subword_prefix", "end_of_word_suffix", "limit_alphabet") if key in options}
    model = {k: v for k, v in train.items() if k != "limit_alphabet"}
    t = Tokenizer(models.BPE(**options, **model))
    if pre is not None:
        t.pre_tokenizer = pre
    if normalizer is not None:
        t.normalizer = normalizer
    if decoder is not None:
        t.decoder = decoder
    specials = list(special) + ([options["unk_token"]] if "unk_token" in options else [])
    if options.get("byte_fallback"):
        specials += [f"<0x{b:02X}>" for b in range(256)] if options.pop("all_bytes", True) else []
    t.train_from_iterator([SAMPLE] * 3, trainers.BpeTrainer(
        vocab_size=vocab, special_tokens=specials, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet() if decoder_is_bytes(decoder) else [], **train))
    for token in added:
        (t.add_special_tokens if token.special else t.add_tokens)([token])
    if post is not None:
        t.post_processor = post(t)
    return t


def decoder_is_bytes(decoder):
    return isinstance(decoder, decoders.ByteLevel)


def template(*around):
    return lambda t: processors.TemplateProcessing(
        single=f"{around[0]} $A {around[1]}".strip(), special_tokens=[(x, t.token_to_id(x)) for x in set(around) if x])


def token(content, **options):
    return AddedToken(content, **options)


ADDED = (token("<tool>", special=True), token("naïve", normalized=True), token("Héllo", normalized=True, single_word=True),
         token("<mask>", lstrip=True, special=True), token("<r>", rstrip=True), token("<both>", lstrip=True, rstrip=True),
         token("fi", single_word=True), token("fib", single_word=True), token("  "), token("é", normalized=True))

TOKENIZERS = {
    "gpt2": lambda: make(level(add_prefix_space=False), decoder=decoders.ByteLevel(), post=lambda t: processors.ByteLevel()),
    "gpt2_prefix_space": lambda: make(level(add_prefix_space=True), decoder=decoders.ByteLevel()),
    "llama3": lambda: make(
        pre_tokenizers.Sequence([split(LLAMA3), level(add_prefix_space=False, use_regex=False)]), decoder=decoders.ByteLevel(),
        ignore_merges=True, post=lambda t: processors.Sequence([processors.ByteLevel(trim_offsets=False), template("<|user|>", "")(t)])),
    "qwen2": lambda: make(
        pre_tokenizers.Sequence([split(QWEN2), level(add_prefix_space=False, use_regex=False)]), normalizer=normalizers.NFC(),
        decoder=decoders.ByteLevel(), added=ADDED),
    "o200k": lambda: make(
        pre_tokenizers.Sequence([split(O200K, "removed", True), level(add_prefix_space=False, use_regex=False)]),
        decoder=decoders.ByteLevel(), post=template("<|user|>", "<|end|>")),
    "deepseek3": lambda: make(
        pre_tokenizers.Sequence([split(r"\p{N}{1,3}"), split("[一-龥\u0800-ゟ゠-ヿ]+"), split(DEEPSEEK3),
                                 level(add_prefix_space=False, use_regex=False)]), decoder=decoders.ByteLevel()),
    "starcoder": lambda: make(pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), level(add_prefix_space=False)]),
                              decoder=decoders.ByteLevel(), added=ADDED),
    "falcon": lambda: make(
        pre_tokenizers.Sequence([pre_tokenizers.Punctuation("contiguous"), level(add_prefix_space=False),
                                 pre_tokenizers.Digits(individual_digits=False), split("[0-9][0-9][0-9]")]), decoder=decoders.ByteLevel()),
    "clip": lambda: make(
        pre_tokenizers.Sequence([split(r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+", "removed", True),
                                 level(add_prefix_space=False)]),
        normalizer=normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]),
        decoder=decoders.BPEDecoder("</w>"), end_of_word_suffix="</w>", unk_token="<|end|>",
        post=lambda t: processors.RobertaProcessing(("<|end|>", 0), ("<|user|>", 1), trim_offsets=False, add_prefix_space=False)),
    "llama2": lambda: make(
        normalizer=normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]), byte_fallback=True, fuse_unk=True,
        unk_token="<unk>", vocab=900, added=ADDED, post=template("<|user|>", "<|end|>"),
        decoder=decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])),
    "metaspace": lambda: make(pre_tokenizers.Metaspace(prepend_scheme="first"), decoder=decoders.Metaspace(prepend_scheme="first"),
                              unk_token="<unk>", added=ADDED, limit_alphabet=60),
    "metaspace_always": lambda: make(pre_tokenizers.Metaspace(prepend_scheme="always", split=False), decoder=decoders.Metaspace(),
                                     unk_token="<unk>", fuse_unk=True, limit_alphabet=40, vocab=300),
    "gemma": lambda: make(split(" ", "merged_with_previous"), normalizer=normalizers.Replace(" ", "▁"), byte_fallback=True, vocab=900,
                          decoder=decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])),
    "wordlike": lambda: make(pre_tokenizers.Whitespace(), normalizer=normalizers.BertNormalizer(), unk_token="<unk>",
                             continuing_subword_prefix="##", decoder=decoders.WordPiece(), limit_alphabet=80,
                             post=lambda t: processors.BertProcessing(("<|end|>", 0), ("<|user|>", 1))),
    "bert_splits": lambda: make(pre_tokenizers.BertPreTokenizer(), normalizer=normalizers.Sequence(
        [normalizers.NFKD(), normalizers.StripAccents(), normalizers.Strip()]), unk_token="<unk>", limit_alphabet=80),
    "spaces": lambda: make(pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.CharDelimiterSplit("-")]),
                           normalizer=normalizers.Sequence([normalizers.NFKC(), normalizers.Nmt()]), unk_token="<unk>", fuse_unk=True),
    "merged_with_next": lambda: make(split(r"[\s,.]", "merged_with_next"), normalizer=normalizers.NFD()),
    "merged_with_previous": lambda: make(split(r"[\s,.]+", "merged_with_previous"), added=ADDED),
    "contiguous": lambda: make(split(r"\w", "contiguous", True)),
    "plain_text_split": lambda: make(pre_tokenizers.Split("e.", "removed")),
    "bytes_as_normalizer": lambda: make(split(GPT2_BYTES), normalizer=normalizers.ByteLevel(), decoder=decoders.ByteLevel()),
    "fixed_length": lambda: make(pre_tokenizers.FixedLength(3)),
    "nothing": lambda: make(),
}
GPT2_BYTES = r"Ġ?[^Ġ]+"


def random_text(rng):
    kinds = (
        lambda: rng.choice(SAMPLE.split(" ")),
        lambda: chr(rng.choice((rng.randrange(0x20, 0x7F), rng.randrange(0xA0, 0x250), rng.randrange(0x300, 0x370)))),
        lambda: chr(rng.choice((rng.randrange(0x370, 0xD800), rng.randrange(0xE000, 0x11000), rng.randrange(0x11000, 0x30000)))),
        lambda: rng.choice((" ", "  ", "\t", "\n", "\r\n", "\u3000", "\xa0", "\u2028", "\x85", "\u200b", "\u180e", "\ufeff")),
        lambda: rng.choice(("'s", "'S", "'ſ", "'LL", "'Re", "'", "''t", "’s", "ﬅ", "İ", "ß", "ǆ", "ﷺ", "\0", "\x7f", "Ⅷ", "²", "٣", "１")),
        lambda: rng.choice(("<tool>", "<mask>", "<r>", "<both>", "naïve", "Héllo", "fi", "fib", "<|end|>", "<|user|>", "<", "▁", "▁▁")),
        lambda: "".join(rng.choice("ab '.,1\n") for _ in range(rng.randrange(12))),
        lambda: rng.choice("aé9 .字") * rng.choice((3, 30, 300)),
    )
    return "".join(rng.choice(kinds)() for _ in range(rng.choice((1, 2, 5, 20, 60))))


def texts(rng, n):
    return ["", " ", SAMPLE, SAMPLE.lower(), SAMPLE.replace(" ", ""), "\n" * 5, " x", "x "] + [random_text(rng) for _ in range(n)]


def ask(path, lines):
    done = subprocess.run([TOOL, path], input="".join(json.dumps(x) + "\n" for x in lines), text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
    head, *answers = map(json.loads, done.stdout.splitlines())
    assert len(answers) == len(lines), (done.returncode, done.stderr)
    return head, answers


def as_text(answer, key):
    return bytes.fromhex(answer[key]).decode(errors="replace")


def compare(path, theirs, questions):
    _, answers = ask(path, [{"text": t} for t in questions])
    for text, ours in zip(questions, answers, strict=True):
        assert "error" not in ours, (text, ours)
        assert ours["ids"] == theirs.encode(text, add_special_tokens=False).ids, (text, theirs.encode(text, add_special_tokens=False).tokens)
        assert ours["special"] == theirs.encode(text).ids, text
        assert as_text(ours, "text") == theirs.decode(ours["ids"], skip_special_tokens=False), text
        assert as_text(ours, "skipped") == theirs.decode(ours["ids"]), text


@pytest.mark.parametrize("name", TOKENIZERS)
def test_ids_and_texts_are_those_of_the_library(name, tmp_path):
    theirs = TOKENIZERS[name]()
    path = tmp_path / "tokenizer.json"
    theirs.save(str(path))
    rng = random.Random(name)
    compare(path, theirs, texts(rng, 400))
    # Any ids, in any order: cut characters, special tokens, bytes.
    size = max(theirs.get_vocab().values()) + 1
    lists = [[rng.randrange(size) for _ in range(rng.randrange(1, 30))] for _ in range(200)]
    for ids, ours in zip(lists, ask(path, [{"ids": x} for x in lists])[1], strict=True):
        assert as_text(ours, "text") == theirs.decode(ids, skip_special_tokens=False), ids
        assert as_text(ours, "skipped") == theirs.decode(ids), ids


# Parts that look at characters one by one. The model writes every byte down, and a bar behind each piece.
CLASSES = {
    "nfc": (normalizers.NFC(), None), "nfd": (normalizers.NFD(), None), "nfkc": (normalizers.NFKC(), None), "nfkd": (normalizers.NFKD(), None),
    "lowercase": (normalizers.Lowercase(), None), "strip_accents": (normalizers.StripAccents(), None), "nmt": (normalizers.Nmt(), None),
    "bert": (normalizers.BertNormalizer(), None), "digits": (None, pre_tokenizers.Digits(True)),
    "punctuation": (None, pre_tokenizers.Punctuation()), "whitespace": (None, pre_tokenizers.Whitespace()),
    "whitespace_split": (None, pre_tokenizers.WhitespaceSplit()), "bert_pre_tokenizer": (None, pre_tokenizers.BertPreTokenizer()),
    "gpt2": (None, level(add_prefix_space=False)), "llama3": (None, split(LLAMA3)), "o200k": (None, split(O200K)),
    "deepseek3": (None, split(DEEPSEEK3)), "classes": (None, split(r"\w+|[[:punct:]]|\h|\p{Han}+|\p{Cn}|\p{Co}")),
}


@pytest.mark.parametrize("name", CLASSES)
def test_every_character_is_of_the_class_that_the_library_says(name, tmp_path):
    normalizer, pre = CLASSES[name]
    theirs = Tokenizer(models.BPE({f"<0x{b:02X}>": b for b in range(256)}, [], byte_fallback=True, end_of_word_suffix="|"))
    if normalizer is not None:
        theirs.normalizer = normalizer
    if pre is not None:
        theirs.pre_tokenizer = pre
    path = tmp_path / "tokenizer.json"
    theirs.save(str(path))
    chars = [c for c in (*range(0x33480), *range(0xE0000, 0xE0200)) if not 0xD800 <= c < 0xE000]
    questions = ["".join(f"a{chr(c)}{chr(c)} {chr(c)}1" for c in chars[i:i + 256]) for i in range(0, len(chars), 256)]
    _, answers = ask(path, [{"text": t} for t in questions])
    wrong = []
    for text, ours, e in zip(questions, answers, theirs.encode_batch(questions, add_special_tokens=False), strict=True):
        if ours["ids"] != e.ids:
            wrong += [hex(ord(text[i + 1])) for i in range(0, len(text), 6)
                      if ask(path, [{"text": text[i:i + 6]}])[1][0]["ids"] != theirs.encode(text[i:i + 6]).ids][:20]
        if len(wrong) > 100:
            break
    assert not wrong
