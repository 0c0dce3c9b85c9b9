"""Which errors are told without a second look by the compiler: those that no header could mend, and no others."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from harness.build.certain_errors import certain_among, never_beside, tokens_of
from harness.build.diagnostics import Diagnostic

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
CANDIDATES = Path(__file__).resolve().parents[2] / "candidates"
SOURCE = "/tmp/build/cuda.cu"
HEADERS = '# 1 "/opt/torch/all.h" 1\nstruct Tensor { int size(int); float* data; };\nTensor zeros(int); int width;\n'


def certain(own, *errors, headers=HEADERS, line=1):
    text = f'# 1 "{SOURCE}"\n{headers}# {line} "{SOURCE}" 2\n{own}\n'
    given = [Diagnostic("error", said, SOURCE, at) for at, said in errors]
    found = certain_among(given, text, SOURCE)
    assert all(each in given for each in found)
    return bool(found) and found == given


def undefined(name, at=1):
    return at, f'identifier "{name}" is undefined'


@pytest.mark.parametrize("own", [
    "int f(int a) { return a + typo; }", "int f(int a) { a = 2 * typo; return a; }", "int f(int a) { return typo(a); }",
    "int f(int a) { int b = (a > 1) * typo; return b; }", "int f(int a) { a <<= width & typo; return a; }",
    "int f(int a) {\n#pragma unroll\n  for (int i = 0; i < typo; ++i) a += i;\n  return a; }",
])
def test_a_name_that_nothing_declares_is_undefined_with_any_headers(own):
    assert certain(own, undefined("typo", 3 if "unroll" in own else 1))


def test_a_member_and_a_name_of_a_namespace_are_names_too():
    assert certain("int f(Tensor t) { return t.sizee(0); }", (1, 'class "at::Tensor" has no member "sizee"'))
    assert certain("Tensor f() { return torch::zeross(1); }", (1, 'namespace "torch" has no member "zeross"'))


def test_the_host_compilers_words_are_known_too():
    own = "int f(Tensor t) { return typo; }"
    for said in ("‘typo’ was not declared in this scope", "'typo' was not declared in this scope; did you mean 'typeof'?"):
        assert certain(own, (1, said))
    assert certain("Tensor f() { return torch::zeross(1); }", (1, "‘zeross’ is not a member of ‘torch’"))
    assert not certain(own, (1, "‘class Tensor’ has no member named ‘typo’"))
    behind = "int f(Tensor t) { int n = t.size(0)\n  int m = 1; return n + m; }"
    assert certain(behind, (1, "expected ‘;’ before ‘int’")) and certain(behind, (2, "expected ‘,’ or ‘;’ before ‘int’"))
    assert not certain(behind, (3, "expected ‘;’ before ‘int’"))


def test_a_function_that_is_bound_and_that_nobody_defines_is_undefined_with_any_headers():
    """As `load_inline` binds it, in what pybind11's macro comes to."""
    said = (1, "‘typo’ was not declared in this scope")
    own = 'void init(Module& m) { auto n = borrow<::Module>(m); m.def("typo", torch::wrap_pybind_function(typo), "typo"); }'
    assert certain(own, said)
    assert not certain(own.replace("torch::wrap_pybind_function", "torch::wrap"), said)
    assert not certain(own.replace("<::Module>", "<:Module:>"), said)


def test_a_name_that_a_header_has_somewhere_is_left_to_the_compiler():
    own = "int f(int a) { return a + typo; }"
    assert not certain(own, undefined("typo"), headers=f"{HEADERS}extern int typo;\n")
    assert certain(own, undefined("typo"), headers=f"{HEADERS}extern int typography;\n")


def test_where_a_compiler_declares_names_by_itself_they_are_left_to_it():
    own = "int f(int a) { return a + typo; }"
    assert not certain(own, undefined("typo"), headers=f'{HEADERS}#pragma GCC aarch64 "arm_sve.h"\n')


@pytest.mark.parametrize("own", [
    "int typo; int f(int a) { return a + typo; }",
    "int f(int a) { int *typo = &a; return a + typo; }",
    "int f(int a) { g(typo); return a + typo; }",
    "int f(int a) { width * typo; return a + typo; }",  # a declaration, if the width were a type
    "namespace a::typo { int b; } int f(int a) { return a + a::typo::b; }",
    "bool operator==(S, S); bool operator<(S typo, S); int f(int a) { return a + typo; }",
    "template <class T> int f(T t) { return t.typo; }",
    "auto f = [](auto t) { return t.typo; };",
    "__attribute__((annotate(1 + typo))) int f(int);",
    "[[vendor::thing(1 + typo)]] int f(int);",
    'int f(int a) { asm("" : "=r"(a) : "r"(a + typo)); return a; }',
    "#pragma vendor typo\nint f(int a) { return a + typo; }",
    'const char* t = R"(x)"; int f(int a) { return a + typo; }',
    "int t\\u0079po; int f(int a) { return a + typo; }",
    "int f(int a) { return __typo(a) + typo; }",
])
def test_a_name_that_may_be_declared_or_never_looked_up_is_left_to_the_compiler(own):
    named = "__typo" if "__typo" in own else "typo"
    assert not certain(own, undefined(named))


@pytest.mark.parametrize(("own", "at"), [
    ("void f() {\n  float sum = 0.0f\n  for (;;) sum += 1;\n}", 3),
    ("void f() {\n  int a = 1\n  int b = 2;\n}", 3),
    ("void f(float* c, float a) {\n  a += 1;\n  c[0] = a\n}", 4),
    ("struct S {\n  int a;\n  int b\n};", 4),
    ("void f() {\n  if (true) { int a; g(a) }\n}", 2),
    ("void f(int n) {\n  int i = b.x * c.x + d.x\n  if (i < n) return;\n}", 3),
    ("void f(int n) {\n  thing a\n  int b = 2;\n}", 3),
    ("void f(float* c) {\n  float a = c[0]\n  for (;;) ++a;\n}", 3),
    ("int f(int a) {\n  g(a)\n  return a;\n}", 3),
    ("void f(int a) {\n  a = b\n  float c = 1;\n}", 3),
])
def test_a_semicolon_that_every_source_needs_there_is_missing_with_any_headers(own, at):
    assert certain(own, (at, 'expected a ";"'))


@pytest.mark.parametrize(("own", "at"), [
    ("void f() {\n  thing const\n  int b = 2;\n}", 3),
    ("void f() {\n  thing static\n  a = 2;\n}", 3),
    ("void f(int a) {\n  if (a)\n  return;\n}", 3),
    ("void f(int a) {\n  do\n  return;\n  while (a);\n}", 3),
    ("void f(int a) {\n  if (a) g(); else\n  return;\n}", 3),
    ("void f(int a) {\n  [[likely]]\n  return;\n}", 3),
    ("void f(int a) {\n  __attribute__((fallthrough(a)))\n  return;\n}", 3),
    ("void f(int a) {\n  _Pragma(\"unroll\")\n  for (;;);\n}", 3),
    ("alignas(16)\nint b;", 2),
    ("void f() {\n  int c[] = {1, 2, g(3) };\n  int b\n  = 2; int d; }", 2),
    ("enum E { A = 1, B };", 1),
    ("void f() { if (1 and 2) g(); }", 1),
    ("void f() { int a = 1; auto s = S{.a = a }; }", 1),
    ("template <class T> void f() {\n  float sum = 0.0f\n  for (;;) sum += 1;\n}", 3),
])
def test_where_a_semicolon_may_stand_elsewhere_it_is_left_to_the_compiler(own, at):
    assert not certain(own, (at, 'expected a ";"'))


def test_errors_of_another_kind_are_left_to_the_compiler_and_one_that_is_certain_stands_beside_them():
    own = "int f(int a) { return a + typo; }"
    other = (1, "no instance of overloaded function matches")
    text = f'# 1 "{SOURCE}"\n{HEADERS}# 1 "{SOURCE}" 2\n{own}\n'
    errors = [Diagnostic("error", said, SOURCE, at) for at, said in (other, undefined("typo"))]
    assert certain_among(errors, text, SOURCE) == errors[1:]
    assert not certain(own, other)
    assert not certain(own)


def test_what_follows_from_a_missing_semicolon_is_not_proven_and_the_semicolon_is():
    own = "void f(float* c) {\n  int i = c[0]\n  float acc = 0;\n  if (i) acc += 1;\n}"
    text = f'# 1 "{SOURCE}"\n{HEADERS}# 1 "{SOURCE}" 2\n{own.replace("c[0]", "i")}\n'
    errors = [Diagnostic("error", said, SOURCE, at) for at, said in ((3, 'expected a ";"'), undefined("acc", 4))]
    assert certain_among(errors, text, SOURCE) == errors[:1]


def test_an_error_in_another_file_is_left_to_the_compiler():
    elsewhere = [Diagnostic("error", undefined("typo")[1], "/home/me/tile.cuh", 1)]
    assert not certain_among(elsewhere, f'# 1 "{SOURCE}"\nint f(int a) {{ return a + typo; }}\n', SOURCE)


def test_lines_are_counted_from_what_the_preprocessor_says():
    own = "void f() {\n  float sum = 0.0f\n  for (;;) sum += 1;\n}"
    assert certain(own, (42, 'expected a ";"'), line=40)
    assert not certain(own, (3, 'expected a ";"'), line=40)


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no C++ compiler")
@pytest.mark.processes
def test_nothing_in_sources_that_compile_is_never_beside_something():
    texts = [
        node.value for folder in (FIXTURES / "launchers", CANDIDATES) for path in sorted(folder.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)
        and isinstance(node.value, str) and ("__global__" in node.value or "torch::Tensor" in node.value)
    ]
    assert len(texts) > 20
    without_headers = "\n".join(re.sub(r"#\s*include.*", "", text) for text in texts)
    came = subprocess.run(
        ["g++", "-E", "-P", "-x", "c++", "-"], input=without_headers, capture_output=True, text=True, check=True
    )
    tokens = list(tokens_of([(1, came.stdout)]))
    assert len(tokens) > 5000
    assert not list(never_beside(tokens))
