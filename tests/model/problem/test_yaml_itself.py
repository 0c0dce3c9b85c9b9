"""The sentence for each way to break YAML itself."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(("yaml", "says"), [
    ("", ": is empty. Copy a neighbouring file and change it."),
    ("# a comment\n", ": is empty. Copy a neighbouring file and change it."),
    ("- a\n- b\n", ":1: must be keys and values, such as 'title: …', one to a line"),
    ("hello\n", ":1: must be keys and values, such as 'title: …', one to a line"),
    ("title: a\ntitle: b\n", ":2: 'title' stands here a second time. Keep this line or line 1."),
    ("sizes:\n  timed: {M: 1, M: 2}\n",
     ":2: 'sizes.timed.M' stands here a second time. Keep this line or line 2."),
    ("title: x\n\tdtype: y\n", ":2: a tab stands where YAML wants spaces. Indent with spaces."),
    ("sizes:\n\ttimed: y\n", ":2: a tab stands where YAML wants spaces. Indent with spaces."),
    (b"title: a\ndtype: \xff\n", ":2: byte 0xff is not UTF-8. Save the file again as UTF-8."),
    ("title: a: b\n",
     ":1: a ':' stands where no key can be. Put text that holds ': ' in quotes, and give keys of "
     "one level one indent."),
    ("title: 'x\ndtype: y\n", ":1: the quote that opens here is never closed"),
    ("a: 1\nsizes: {M: 1\nb: 2\n",
     ":2: the '{' that opens here is not closed, or a ',' is missing after it. What follows is read as part of it up "
     "to line 3."),
    ("a: 1\nkinds: [custom\n", ":2: the '[' that opens here is never closed"),
    ("a: 1\nkinds: [custom,\n\n# the end\n", ":2: the '[' that opens here is never closed"),
    ("a: {b: [1, 2], c: [3,\n  4,\n\n", ":1: the '[' that opens here is never closed"),
    ("a: [[1], {b: 2}, '[',\n", ":1: the '[' that opens here is never closed"),
    ("check: [\n  - {M: 1}\n]\n",
     ":1: the '[' that opens here is not closed, or a '-' stands after it. What follows is read as part of it up "
     "to line 2."),
    ("a: 1\ncheck: [{M: 1},, {M: 2}]\n", ":2: a ',' stands where a value is missing. Take it away."),
    ("check: [1,\n  2, }\n", ":2: a '}' closes nothing. What is open here is the '[' of line 1."),
    ("useful: {flops: *M}\n", ":1: a value cannot begin with '*' or '&'. Put the value in quotes."),
    ("title: %x\n", ":1: a value cannot begin with '%'. Put the value in quotes."),
    ("title: @x\n", ":1: a value cannot begin with '@'. Put the value in quotes."),
    ("a: 1\n---\nb: 2\n", ":2: a second document begins after '---'. Keep one document to a file."),
    ("a: 1\nb: \x01\n", ":2: the character U+0001 cannot stand in YAML"),
    ("? [a]\n: 1\n", ":1: a key must be a word, not a list or a mapping"),
    ("title: !!python/object:os.system x\n",
     ":1: the tag '!!python/object:os.system' is not used in this file. Write the plain value."),
    ("title: &x [*x]\n", ":1: an alias (*) refers to the value that it stands in"),
    ("a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi")),
     ":1: holds more than 10,000 values, with what an alias (*) stands for counted each time"),
    ("title: x\ndtype\nkinds: [custom]\n", ":2: there is a key without its ':'. Write key: value."),
    ("sizes: {timed: {M:1}}\n", ":1: 'M:1' needs a space after its ':'. Write M: 1"),
    ("title: 'x' y\n",
     ":1: text follows after a closing quote or bracket. Put the whole value in one pair of quotes."),
    ("title: x]\nkinds: [a]]\n", ":2: there is a bracket too many. Take it away, or put the text in quotes."),
    ("  title: a\ndtype: b\n",
     ":2: this line is not indented like those above it. Give keys of one level one indent."),
    ("- a\nb: 1\n", ":2: keys and list items stand at one level. Indent one of them."),
    ('title: "C:\\quick"\n',
     ":1: a text in double quotes holds a backslash that means nothing. Use single quotes."),
    ("title: " + "[" * 600, ": is nested too deeply to be read"),
])
def test_broken_yaml_is_told_in_one_sentence_at_its_line(files, yaml, says):
    assert files.message(yaml) == f"problems/x.yaml{says}"


def test_a_file_in_utf_16_says_so(files):
    says = "problems/x.yaml:1: is UTF-16, not UTF-8. Save it again as UTF-8."
    assert files.message(files.yaml.encode("utf-16")) == says
