"""Errors that no header could mend: what a compiler says with the stand-in, and must say with PyTorch's headers too.

To compile with those takes many times as long as to preprocess. So the preprocessed text is looked at, in which every
macro is replaced and every declaration stands. A few errors follow from it alone: a name that nothing in it declares,
and two tokens that no C++ has beside each other. Whatever else was said is for the compiler to say again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from harness.build.diagnostics import Diagnostic

_MARKER = re.compile(r'^#(?: line)? ?(\d+) "([^"\n]*)".*\n', re.MULTILINE)
_DIRECTIVE = re.compile(r"^[ \t]*#.*", re.MULTILINE)
_TOKEN = re.compile(
    r"""(?P<string>(?:u8|[uUL])?"(?:[^"\\\n]|\\.)*"\w*|(?:u8|[uUL])?'(?:[^'\\\n]|\\.)*'\w*)
    |(?P<number>\.?\d(?:[eEpP][+-]|'\w|[\w.])*)
    |(?P<word>[A-Za-z_$][\w$]*)
    |(?P<mark>->\*?|::|\.\.\.|\+\+|--|&&|\|\||<<=?|[-+*/%&|^=!<>]=|\S)""",
    re.VERBOSE,
)
# Spellings not read here: raw strings, other brackets (`<::` is none), letters by their number, lines that go on.
_NOT_READ = re.compile(r'R"|<:(?!:[^:>])|:>|<%|%>|%:|\\[uU\n]|\?\?')
# Code that is looked at only when it is used, or by other rules.
_GENERIC = frozenset({"template", "requires", "concept", "__if_exists", "__if_not_exists", "import", "module"})
# Before brackets that hold what is no C++, or need not be known.
_FOREIGN = ("__attribute__(", "__attribute(", "__declspec(", "__location__(", "_Pragma(", "__pragma(", "[[", *(
    f"{word}(" for word in ("asm", "__asm", "__asm__", "volatile", "__volatile__", "goto", "__builtin_offsetof")
))
# Behind one of these a name is used, and never declared: no declarator and no label begins there.
_BEFORE_A_USE = frozenset({
    "=", "+", "-", "/", "%", "==", "!=", "<=", ">=", "<", "||", "|", "^", "?", "!", "+=", "-=", "*=", "/=", "%=", "|=",
    "&=", "^=", "<<", "<<=", ".", "->", "::", "return",
})
# Behind these, too, where an assignment, an initializer or a return has begun.
_BEFORE_A_USE_IN_EXPRESSIONS = frozenset({"*", "&", "&&", ">", ">>"})
_BEGINS_AN_EXPRESSION = frozenset({"=", "+=", "-=", "*=", "/=", "%=", "|=", "&=", "^=", "<<=", "return"})
_ENDS_AN_EXPRESSION = frozenset({";", ",", ":", "{", "}"})
_MAY_FOLLOW_A_NUMBER = frozenset({
    "and", "or", "xor", "bitand", "bitor", "not_eq", "and_eq", "or_eq", "xor_eq", "override", "final",
})
# What begins a statement, or names a type that no other type may stand beside: neither has a place behind a name of the
# author's, a call, or an element of an array.
_BEGINS_A_STATEMENT = frozenset({"if", "for", "while", "switch", "return", "break", "continue", "goto", "else", "case"})
_TYPES = frozenset({"int", "float", "double", "char", "bool", "void", "unsigned", "signed", "short", "long"})
KEYWORDS = _BEGINS_A_STATEMENT | _TYPES | frozenset("""
    alignas alignof and and_eq asm auto bitand bitor catch char8_t char16_t char32_t class co_await co_return co_yield
    compl concept const const_cast consteval constexpr constinit decltype default delete do dynamic_cast enum explicit
    export extern false friend inline mutable namespace new noexcept not not_eq nullptr operator or or_eq private
    protected public register reinterpret_cast requires sizeof static static_assert static_cast struct template this
    thread_local throw true try typedef typeid typename union using virtual volatile wchar_t xor xor_eq
""".split())
_NO_NAMES = KEYWORDS | {"final", "override", "restrict", "typeof"}
# Of nvcc, then of g++, whose quotes hang on the language.
_UNDECLARED = re.compile(
    r'identifier "(\w+)" is undefined|(?:class|struct|union|namespace) "[^"]*" has no member "(\w+)"'
    r"|[‘'](\w+)[’'] (?:was not declared in this scope|is not a member of [‘'][^’']*[’'])(?:; did you mean .*)?"
)
_NO_SEMICOLON = re.compile(r"""expected a ";"|expected (?:[‘'],[’'] or )?[‘'];[’'] before .*""")
# What has a compiler declare names that stand in no text.
_DECLARED_WITHIN = re.compile(r'^#pragma GCC (?:aarch64|arm|riscv) "', re.MULTILINE)
# What load_inline binds a function by.
_BINDS = ["torch", "::", "wrap_pybind_function", "("]


@dataclass(frozen=True)
class Token:
    """One token of a source: its text, its kind (string, number, word or mark), its line in the file, and the brackets
    around it, the outermost first, each with the token before it.
    """

    text: str
    kind: str
    line: int
    inside: tuple[str, ...]


def may_be_certain(errors: Sequence[Diagnostic]) -> bool:
    """Whether it is worth preprocessing for `errors`: where all are of another kind it is left to the compiler."""
    return any(_NO_SEMICOLON.fullmatch(each.text) or _UNDECLARED.fullmatch(each.text) for each in errors)


def certain_among(errors: Sequence[Diagnostic], preprocessed: str, source: str) -> list[Diagnostic]:
    """Those of `errors`, which a compiler found in `source` with other headers, that it must find with these too.

    `preprocessed` is what the preprocessor makes of that file, with the lines in which it names files. What cannot be
    told is left out, and so is what may only follow from another error.
    """
    if not may_be_certain(errors):
        return []
    own, others = _parted(preprocessed, source)
    if any(_NOT_READ.search(text) for _, text in own):
        return []
    tokens = list(tokens_of(own))
    if any(each.text in _GENERIC or (each.text == "auto" and _ends_with(each.inside, "(")) for each in tokens):
        return []
    # g++ points behind what lacks the semicolon, nvcc to what comes next.
    broken, certain_errors = {token.line for pair in never_beside(tokens) for token in pair}, []
    for error in errors:
        if error.file != source or error.line is None:
            continue
        undeclared = _UNDECLARED.fullmatch(error.text)
        if undeclared is not None:
            if _is_only_used(next(filter(None, undeclared.groups())), tokens, own, others):
                certain_errors.append(error)
        elif _NO_SEMICOLON.fullmatch(error.text) and error.line in broken:
            certain_errors.append(error)
    return certain_errors


def tokens_of(parts: Iterable[tuple[int, str]]) -> Iterator[Token]:
    """The tokens of texts that begin at these lines of one file; not those of directives."""
    before, inside = "", []
    for first_line, text in parts:
        line, at = first_line, 0
        text = _DIRECTIVE.sub("", text)
        for match in _TOKEN.finditer(text):
            line += text.count("\n", at, match.start())
            at, token = match.start(), match[0]
            if token in (")", "]", "}") and inside:
                inside.pop()
            yield Token(token, match.lastgroup or "", line, tuple(inside))
            if token in ("(", "[", "{"):
                inside.append(f"{before}{token}")
            before = token


def never_beside(tokens: Sequence[Token]) -> Iterator[tuple[Token, Token]]:
    """The neighbours among `tokens` that no C++ has: a number and then a word, what ends an expression and then what
    begins a statement, and the end of a block behind a statement that has none. A block, or the body of a class or a
    namespace, is told from a list by a semicolon of its own.
    """
    yield from (pair for pair in _ends_and_beginnings(tokens) if set(_FOREIGN).isdisjoint(pair[0].inside))
    blocks: list[bool] = []
    for first, second in zip(tokens, tokens[1:]):
        if first.text == "{":
            blocks.append(False)
        elif first.text == "}" and blocks:
            blocks.pop()
        elif first.text == ";" and blocks and _ends_with(first.inside, "{"):
            blocks[-1] = True
        if not set(_FOREIGN).isdisjoint(first.inside):
            continue
        if first.kind == "number" and second.kind == "word":
            if second.text not in _MAY_FOLLOW_A_NUMBER and not second.text.startswith("__"):
                yield first, second
        elif second.text == "}" and blocks and blocks[-1] and first.inside[:-1] == second.inside:
            if first.kind in ("number", "string", "word") or first.text == ")":
                yield first, second


def _ends_and_beginnings(tokens: Sequence[Token]) -> Iterator[tuple[Token, Token]]:
    """Where a name, a call or an element of an array is followed by what begins a statement, or a type."""
    called: list[Token | None] = []
    before: Token | None = None
    for first, second in zip(tokens, tokens[1:]):
        opener = called.pop() if first.text == ")" and called else None
        if first.text == "(":
            called.append(before)
        if second.text in _BEGINS_A_STATEMENT or second.text in _TYPES:
            is_call = first.text == ")" and opener is not None and _is_a_name(opener)
            is_element = first.text == "]" and before is not None and before.text not in ("]", "[")
            if is_call or is_element or _is_a_name(first):
                yield first, second
        before = first


def _is_a_name(token: Token) -> bool:
    """Whether an author gave it: what begins with an underscore may be a compiler's own."""
    return token.kind == "word" and not token.text.startswith("_") and token.text not in _NO_NAMES


def _is_only_used(name: str, tokens: Sequence[Token], own: Iterable[tuple[int, str]], others: str) -> bool:
    """Whether no header has `name`, and the source only where a name that nothing declares is an error."""
    word = re.compile(rf"(?<![\w$]){name}(?![\w$])")
    directives = [line for _, text in own for line in _DIRECTIVE.findall(text)]
    # What compilers declare themselves begins with two underscores.
    if name.startswith("__") or (name in others and word.search(others)) or any(map(word.search, directives)):
        return False
    if _DECLARED_WITHIN.search(others):
        return False
    indexes = [index for index, token in enumerate(tokens) if token.text == name]
    return bool(indexes) and all(is_a_use(tokens, index) for index in indexes)


def is_a_use(tokens: Sequence[Token], index: int) -> bool:
    """Whether the name at `index` is looked up there, whatever the names around it stand for."""
    if index < 2 or tokens[index - 2].text == "operator" or not set(_FOREIGN).isdisjoint(tokens[index].inside):
        return False
    before = tokens[index - 1].text
    if before == "(":
        return [each.text for each in tokens[max(0, index - len(_BINDS)):index]] == _BINDS
    if before == "::" and _names_a_namespace(tokens, index):
        return False
    return before in _BEFORE_A_USE or (before in _BEFORE_A_USE_IN_EXPRESSIONS and _is_in_expression(tokens, index))


def _is_in_expression(tokens: Sequence[Token], index: int) -> bool:
    depth = len(tokens[index].inside)
    for at in range(index - 1, -1, -1):
        token = tokens[at]
        if len(token.inside) < depth or (len(token.inside) == depth and token.text in _ENDS_AN_EXPRESSION):
            return False
        if len(token.inside) == depth and token.text in _BEGINS_AN_EXPRESSION:
            return True
    return False


def _names_a_namespace(tokens: Sequence[Token], index: int) -> bool:
    """Whether the token is the end of `namespace a::b`, which declares b."""
    while index >= 0 and (tokens[index].kind == "word" or tokens[index].text == "::"):
        if tokens[index].text == "namespace":
            return True
        index -= 1
    return False


def _ends_with(inside: Sequence[str], bracket: str) -> bool:
    return bool(inside) and inside[-1].endswith(bracket)


def _parted(preprocessed: str, source: str) -> tuple[list[tuple[int, str]], str]:
    """The parts of the text that are the file's own, each with the line it begins at, and all others together."""
    markers = list(_MARKER.finditer(preprocessed))
    ends = [*(marker.start() for marker in markers[1:]), None]
    parts = [(marker, preprocessed[marker.end():end]) for marker, end in zip(markers, ends)]
    own = [(int(marker[1]), text) for marker, text in parts if marker[2] == source]
    return own, "".join(text for marker, text in parts if marker[2] != source)
