"""Folders of libraries in whose path there is a blank, as PyTorch hands them to ninja and Inductor to its compiler."""

from __future__ import annotations

from harness.build.recording import with_quoted_folders


def written(*flags: str) -> list[str]:
    seen = []

    def write(path, cflags, ldflags):
        seen.extend(ldflags)

    with_quoted_folders(write)("build.ninja", ["-O3"], list(flags))
    return seen


def test_a_folder_with_a_blank_is_quoted_and_nothing_else(tmp_path):
    folder = tmp_path / "my torch"
    folder.mkdir()
    flags = (f"-L{tmp_path}", "-lc10", f"'-L{folder}'", f"-L{tmp_path} -lm", "-shared")
    assert written(f"-L{folder}", *flags) == [f"'-L{folder}'", *flags]


def test_a_writer_without_such_flags_is_left_alone():
    seen = []
    with_quoted_folders(lambda path, cflags: seen.append(cflags))("build.ninja", cflags=["-O3"])
    assert seen == [["-O3"]]


def test_inductor_is_given_them_quoted():
    from torch._inductor import cpp_builder

    import harness.player.compiling  # noqa: F401

    options = cpp_builder.BuildOptionsBase(libraries_dirs=["/my torch/lib", "/lib"])
    assert options.get_libraries_dirs() == ["'/my torch/lib'", "/lib"]
