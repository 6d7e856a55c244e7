#!/usr/bin/env bash
# tokenizers 0.23.3 (PyPI): a limit below the number of special tokens turns truncation off.
#
# Expected: `enable_truncation(max_length=1)` gives at most one token, or an error, because the post-processor adds two.
# Observed: the whole text is returned. With a limit of 2 there are the two special tokens alone. So a limit that is
#   computed, such as what an earlier text leaves, must not fall below the number of special tokens: the text would
#   become as long as it is.
#
# Output:
#   max_length=3: ['[CLS]', 'green', '[SEP]']
#   max_length=2: ['[CLS]', '[SEP]']
#   max_length=1: ['[CLS]', 'green', 'tea', 'please', '[SEP]']
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check tokenizers==0.23.3

cat >"$work/check.py" <<'PYTHON'
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

words = {word: number for number, word in enumerate(["[CLS]", "[SEP]", "[UNK]", "green", "tea", "please"])}
tokenizer = Tokenizer(WordLevel(words, unk_token="[UNK]"))
tokenizer.pre_tokenizer = Whitespace()
special = [("[CLS]", words["[CLS]"]), ("[SEP]", words["[SEP]"])]
tokenizer.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=special)

seen = {}
for limit in (3, 2, 1):
    tokenizer.enable_truncation(max_length=limit)
    seen[limit] = tokenizer.encode("green tea please").tokens
    print(f"max_length={limit}: {seen[limit]}")
unchanged = [len(tokens) for tokens in seen.values()] == [3, 2, 5]
raise SystemExit(0 if unchanged else "changed: tokenizers behaves differently")
PYTHON

env -i PATH="$PATH" HOME="$work" "$work/venv/bin/python" "$work/check.py"
