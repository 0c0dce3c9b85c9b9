"""The sentence for each wrong key or value of a problem file, and for keys that do not fit each other."""

from __future__ import annotations

import pytest

E1 = "Write, for example, timed: {M: 4096}"
E2 = "Write, for example, title: Product of two lower triangular matrices"
NO_QUOTES = "Take the quotes away: 4096"


@pytest.mark.parametrize(("old", "new", "says"), [
    ("title", "tilte", "1: unknown key 'tilte'. Did you mean 'title'?"),
    ("kinds:", "wibble:",
     "15: unknown key 'wibble'. The keys here are title, reference, dtype, mode, sizes, useful, "
     "accuracy and 3 more."),
    ("class:", "clas:", "13: unknown key 'accuracy.clas'. Did you mean 'class'?"),
    ("kinds: [custom]", "flops: M", "15: unknown key 'flops'. It belongs below 'useful:'."),
    ("  flops:", "  title:",
     "11: unknown key 'useful.title'. It belongs at the left margin, not below another key."),
    ("  cpu:", "  gpu:", "9: unknown key 'sizes.gpu'. Did you mean 'cpu'?"),
    ("title: A product\n", "", f"1: 'title' is missing. {E2}"),
    ("reference: x.py\n", "", "1: 'reference' is missing. Write, for example, reference: tril_matmul.py"),
    ("  timed: {M: 4096, K: 8, N: 4}\n", "", f"4: 'sizes.timed' is missing. {E1}"),
    ("A product", "", f"1: title must be a line of text, not empty. {E2}"),
    ("A product", "5", f"1: title must be a line of text, not 5. {E2}"),
    ("M: 4096", "M: 4k", f"5: sizes.timed.M must be a whole number of at least 1, not '4k'. {E1}"),
    ("M: 4096", "M: 0", f"5: sizes.timed.M must be a whole number of at least 1, not 0. {E1}"),
    ("M: 4096", "M: -1", f"5: sizes.timed.M must be a whole number of at least 1, not -1. {E1}"),
    ("M: 4096", "M: 1.5", f"5: sizes.timed.M must be a whole number of at least 1, not 1.5. {E1}"),
    ("M: 4096", "M: true", f"5: sizes.timed.M must be a whole number of at least 1, not true. {E1}"),
    ("M: 4096", "M: ", f"5: sizes.timed.M must be a whole number of at least 1, not empty. {E1}"),
    ("M: 4096", "M: '4096'",
     f"5: sizes.timed.M must be a whole number of at least 1, not '4096'. {NO_QUOTES}"),
    ("{M: 4096, K: 8, N: 4}", "{}", f"5: sizes.timed must be a mapping from size to number, not {{}}. {E1}"),
    ("{M: 4096, K: 8, N: 4}", "[4096]",
     f"5: sizes.timed must be a mapping from size to number, not [4096]. {E1}"),
    ("{M: 31, K: 9, N: 3}", "5",
     "8: sizes.check[1] must be a mapping from size to number, not 5. "
     "Write, for example, check: [{M: 1}, {M: 31}]"),
    ("{M: 31, K: 9, N: 3}", "{M: 31, K: x, N: 3}",
     "8: sizes.check[1].K must be a whole number of at least 1, "
     "not 'x'. Write, for example, check: [{M: 1}, {M: 31}]"),
    ("float32", "flaot32",
     "3: dtype must be float32, float64, float16 or bfloat16, not 'flaot32'. "
     "Did you mean 'float32'?"),
    ("float32", "fp32",
     "3: dtype must be float32, float64, float16 or bfloat16, not 'fp32'. Did you mean 'float32'?"),
    ("float32", "[float32]", "3: dtype must be float32, float64, float16 or bfloat16, not [float32]"),
    ("fp32,", "fp23,",
     "13: accuracy.class must be fp32, tf32, bf16 or fp16, not 'fp23'. Did you mean 'fp32'?"),
    ("abs_inputs", "abs_input",
     "13: accuracy.scale must be abs_inputs or row_max, not 'abs_input'. "
     "Did you mean 'abs_inputs'?"),
    ("[1, 0]", "1",
     "13: accuracy.contracted must be the list of the axes that are summed over, one for each factor, "
     "not 1. Write, for example, contracted: [1, 0]"),
    ("[1, 0]", "[-1, 0]",
     "13: accuracy.contracted[0] must be an axis: 0, 1, 2, …, not -1. "
     "Write, for example, contracted: [1, 0]"),
    ("[eager,", "[eagr,",
     "14: baselines[0] must be eager, torch.compile or eager-tf32, not 'eagr'. "
     "Did you mean 'eager'?"),
    ("[eager, torch.compile, eager-tf32]", "eager",
     "14: baselines must be a list of eager, torch.compile and eager-tf32, not 'eager'. "
     "Write, for example, baselines: [eager, torch.compile]"),
    ("[eager, torch", "[torch",
     "14: baselines leaves out eager, which every speedup is measured against. "
     "Add eager to the list."),
    ("eager-tf32", "eager", "14: baselines names 'eager' twice. Once is enough."),
    ("[custom]", "[]",
     "15: kinds must be a list of custom, mixed and library, not []. "
     "Write, for example, kinds: [custom]"),
    ("[custom]", "[custom, libary]",
     "15: kinds[1] must be custom, mixed or library, not 'libary'. "
     "Did you mean 'library'?"),
])
def test_a_wrong_key_or_value_names_its_line_and_what_to_type(files, old, new, says):
    assert files.message(files.yaml.replace(old, new, 1)) == f"problems/x.yaml:{says}"


@pytest.mark.parametrize(("old", "new", "says"), [
    ("2*M*K*N", "2*M*Q*N", "11: useful.flops uses 'Q', which is no size of this problem (M, K, N)"),
    ("2*M*K*N", "2*m*K*N",
     "11: useful.flops uses 'm', which is no size of this problem (M, K, N). "
     "Did you mean 'M'?"),
    ('"2*M*K*N"', "2M", "11: useful.flops lacks an operator between two factors. Write * between them."),
    ('"2*M*K*N"', "[1]",
     '11: useful.flops must be a formula in the sizes, not [1]. '
     'Write, for example, flops: "2*M*N*K"'),
    ('"2*M*K*N"', "true",
     '11: useful.flops must be a formula in the sizes, not true. '
     'Write, for example, flops: "2*M*N*K"'),
    ('"2*M*K*N"', "M-4096", "11: useful.flops must be more than 0, but is 0 at M=4096, K=8, N=4"),
    ('"2*M*K*N"', "M-600", "11: useful.flops must be more than 0, but is -88 at M=512, K=8, N=4"),
    ('"2*M*K*N"', "M/(K-8)", "11: useful.flops divides by zero at K=8, M=4096"),
    ("terms: K", "terms: log2(K)", "13: accuracy.terms must be at least 1, but is 0 at M=1, K=1, N=1"),
    ("{M: 31, K: 9, N: 3}", "{M: 31, K: 9}", "8: sizes.check[1] leaves out N. Write {M: 31, K: 9, N: …}."),
    ("{M: 31, K: 9, N: 3}", "{M: 31, k: 9, N: 3}",
     "8: sizes.check[1] has 'k', which is no size of sizes.timed "
     "(M, K, N). Did you mean 'K'?"),
    ("N: 4}\nuseful", "N: 4, Q: 3}\nuseful",
     "9: sizes.cpu has 'Q', which is no size of sizes.timed (M, K, N). "
     "Add it to sizes.timed or take it away."),
])
def test_keys_that_do_not_fit_each_other_are_told_at_their_line(files, old, new, says):
    assert files.message(files.yaml.replace(old, new, 1)) == f"problems/x.yaml:{says}"


def test_a_formula_without_any_size_says_that_there_is_none(files):
    assert files.message(files.minimal + "useful: {flops: M}\n") == \
        "problems/x.yaml:3: useful.flops uses 'M', which is no size of this problem, which has none"


def test_a_size_that_python_could_not_name_is_refused(files):
    message = files.message(files.minimal + "sizes: {timed: {batch-size: 3}}\n")
    assert message == ("problems/x.yaml:3: 'batch-size' is no name that Python could give to a size. "
                       "Use letters, digits and underscores, a letter first.")


def test_every_mistake_in_both_files_is_reported_on_a_line_of_its_own(files):
    yaml = files.yaml.replace("title", "tilte").replace("M: 4096", "M: 4k").replace("2*M*K*N", "2*M*Q*N")
    reference = files.reference.replace("class Model", "class Modle")
    assert files.message(yaml.replace("[custom]", "[cusom]"), reference) == (
        "problems/x.yaml:1: unknown key 'tilte'. Did you mean 'title'?\n"
        f"problems/x.yaml:5: sizes.timed.M must be a whole number of at least 1, not '4k'. {E1}\n"
        "problems/x.yaml:11: useful.flops uses 'Q', which is no size of this problem (M, K, N)\n"
        "problems/x.yaml:15: kinds[0] must be custom, mixed or library, not 'cusom'. Did you mean 'custom'?\n"
        "problems/x.py:5: found class Modle; the harness runs the class named Model. Rename it to Model."
    )
