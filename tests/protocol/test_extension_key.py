"""One name for one extension, whichever process asks and however it spells the call."""

from __future__ import annotations

import pytest

from harness.protocol.extension_key import extension_key, names_folder

GIVEN = {"name": "product", "cpp_sources": "int f();", "cuda_sources": "int f() { return 1; }", "functions": "f"}


def test_the_key_is_sixteen_hex_digits_and_the_same_every_time():
    key = extension_key("load_inline", GIVEN)
    assert len(key) == 16
    assert int(key, 16) >= 0
    assert extension_key("load_inline", dict(reversed(GIVEN.items()))) == key


@pytest.mark.parametrize(
    "spelling",
    [
        {"cpp_sources": ["int f();"]},
        {"functions": ["f"]},
        {"functions": ("f",)},
        {"extra_cflags": None},
        {"verbose": True},
        {"build_directory": "/somewhere/else"},
        {"keep_intermediates": False},
        {"sycl_sources": []},
        {"name": "product_5f3a"},
    ],
    ids=str,
)
def test_other_spellings_of_the_same_build_share_the_key(spelling):
    assert extension_key("load_inline", GIVEN | spelling) == extension_key("load_inline", GIVEN)


@pytest.mark.parametrize(
    "change",
    [
        {"cuda_sources": "int f() { return 2; }"},
        {"functions": ["f", "g"]},
        {"functions": {"f": "what it does"}},
        {"extra_cuda_cflags": ["-O3"]},
        {"with_cuda": True},
        {"cpp_sources": ["int f();", ""]},
    ],
    ids=str,
)
def test_what_builds_something_else_has_another_key(change):
    assert extension_key("load_inline", GIVEN | change) != extension_key("load_inline", GIVEN)


@pytest.mark.parametrize("text", [
    "PYBIND11_MODULE({0}, m) {{ m.def(\"f\", &f); }}", "TORCH_LIBRARY({0}, m) {{}}", "TORCH_LIBRARY_IMPL( {0}, CPU, m) {{}}",
    "extern \"C\" PyObject* PyInit_{0}(void);", "NB_MODULE({0}, m) {{}}",
])
def test_a_name_made_unique_at_run_time_does_not_count_where_it_names_the_module(tmp_path, text):
    keys = set()
    for name in ("ext_5f3a", "ext_77b1"):
        path = tmp_path / f"{name}.cpp"
        path.write_text(text.format(name))
        keys.add(extension_key("load_inline", {"name": name, "cpp_sources": text.format(name)}))
        keys.add(extension_key("load", {"name": name, "sources": [str(path)]}))
    assert len(keys) == 2


def test_a_name_that_is_also_called_in_the_source_counts_there():
    calls = ({"name": name, "cuda_sources": f"y = {name}(x);"} for name in ("sinf", "cosf"))
    assert len({extension_key("load_inline", call) for call in calls}) == 2


def test_load_counts_the_contents_of_its_files_and_not_where_they_lie(tmp_path):
    paths = []
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
        paths.append(tmp_path / folder / "kernel.cu")
        paths[-1].write_text("int f();")
    here, there = ({"name": "k", "sources": [str(path)]} for path in paths)
    assert extension_key("load", here) == extension_key("load", there)
    paths[1].write_text("int g();")
    assert extension_key("load", here) != extension_key("load", there)


def test_a_source_file_that_is_missing_has_a_key_too():
    assert len(extension_key("load", {"name": "k", "sources": "/no/such/file.cu"})) == 16


def test_the_two_calls_never_share_a_key():
    assert extension_key("load", {"name": "k"}) != extension_key("load_inline", {"name": "k"})


@pytest.mark.parametrize("given", [
    {"extra_include_paths": ["{}"]}, {"extra_include_paths": ["{}/include"]}, {"extra_cuda_cflags": ["-O3", "-I{}"]},
    {"extra_cflags": ["-isystem", "{}/include"]}, {"extra_include_paths": ["/opt/cutlass/include"]},
], ids=str)
def test_where_a_candidate_lies_in_whose_folder_compilers_look_for_files_does_not_count(given, tmp_path):
    def arguments(folder):
        return {"name": "k", **{name: [each.format(folder) for each in paths] for name, paths in given.items()}}

    (tmp_path / "linked").symlink_to(tmp_path / "here")
    keys = set()
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        keys.add(extension_key("load", arguments(tmp_path / name), tmp_path / name))
        assert not names_folder("load", arguments(tmp_path / name), tmp_path / name)
    keys.add(extension_key("load", arguments(tmp_path / "here"), tmp_path / "linked"))
    assert len(keys) == 1
    assert extension_key("load", arguments(tmp_path / "here"), tmp_path / "there") not in keys or "/opt" in str(given)


@pytest.mark.parametrize("given", [
    {"extra_cuda_cflags": ["-DTABLE={}/table.bin"]}, {"extra_ldflags": ["{}/more.o"]}, {"cpp_sources": "// {}/x"},
    {"extra_include_paths": "{}"},
], ids=str)
def test_a_place_that_may_be_in_what_is_built_counts(given, tmp_path):
    def arguments(folder):
        return {name: [each.format(folder) for each in texts] if isinstance(texts, list) else texts.format(folder)
                for name, texts in given.items()}

    here, there = tmp_path / "here", tmp_path / "there"
    assert extension_key("load_inline", arguments(here), here) != extension_key("load_inline", arguments(there), there)
    assert names_folder("load_inline", arguments(here), here)


@pytest.mark.parametrize("given", [
    {"extra_include_paths": ["{above}/include"]}, {"extra_ldflags": ["-L{above}/lib"]}, {"extra_cflags": ["-DROOT={above}"]},
], ids=str)
def test_a_folder_that_the_candidates_lies_in_counts_too(given, tmp_path):
    here = tmp_path / "project" / "candidates"
    arguments = {name: [each.format(above=here.parent) for each in texts] for name, texts in given.items()}
    assert names_folder("load", arguments, here)
    assert not names_folder("load", {"extra_include_paths": ["/opt/cutlass/include", f"{here}/include"]}, here)
