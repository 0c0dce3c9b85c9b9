"""Who compiles: a process that runs none of the candidate's code, and what is said of a build where one had to."""

from __future__ import annotations

import pytest

from harness.model.verdict import ReasonCode, Status

from .conftest import LIGHT_CANDIDATE, needs_cxx

pytestmark = [pytest.mark.processes, pytest.mark.slow, needs_cxx]


def built(build_pool, name, source):
    (build,) = build_pool.build(build_pool.write(name, source))
    return build


def test_what_the_usual_call_comes_to_is_proven_and_lies_where_the_import_could_not_write(build_pool):
    after = "\nimport os, pathlib\nplace = pathlib.Path(extension.__file__)\nassert not os.access(place, os.W_OK), 'writable'\n"
    after += "try:\n    place.write_bytes(b'')\nexcept OSError:\n    pass\nelse:\n    raise AssertionError('written')\n"
    build = built(build_pool, "usual", LIGHT_CANDIDATE + after)
    assert build.verdict is None, build.verdict
    assert build.unproven == "" and len(build.extensions) == 1


def test_a_flag_that_may_start_a_program_is_named(build_pool):
    build = built(build_pool, "wrapped", LIGHT_CANDIDATE.replace('"-O0"', '"-O0", "-wrapper", "env"'))
    assert build.verdict is None, build.verdict
    assert build.unproven.endswith("-wrapper")


def test_what_only_the_candidates_own_process_can_compile_is_built_there_and_said_to_be(build_pool):
    """A header that it has written into its own /tmp."""
    header = 'import pathlib\npathlib.Path("/tmp/own_header.h").write_text("#define TIMES 2")\n'
    source = header + LIGHT_CANDIDATE.replace("return x * 2;", "return x * TIMES;").replace(
        "#include <Python.h>", '#include <Python.h>\n#include "own_header.h"'
    ).replace('extra_cflags=["-O0"]', 'extra_cflags=["-O0"], extra_include_paths=["/tmp"]')
    build = built(build_pool, "own_header", source)
    assert build.verdict is None, build.verdict
    assert "compiled by the process that ran the candidate's own code" in build.unproven


def test_what_pytorch_is_told_before_the_call_counts_for_it(build_pool):
    told = "import torch.utils.cpp_extension as cpp_extension\ncpp_extension.COMMON_NVCC_FLAGS.append('-DTOLD')\n"
    assert built(build_pool, "told", told + LIGHT_CANDIDATE).unproven == ""
    doubtful = told.replace("-DTOLD", "-ccbin=/tmp/mine")
    assert built(build_pool, "doubtful", doubtful + LIGHT_CANDIDATE).unproven.endswith("-ccbin=/tmp/mine")


def test_a_call_that_no_compiler_takes_is_the_candidates_failure_with_its_line(build_pool):
    build = built(build_pool, "broken", LIGHT_CANDIDATE.replace("return x * 2;", "return x *;"))
    assert (build.verdict.status, build.verdict.reason_code) == (Status.BUILD_FAILED, ReasonCode.COMPILE_ERROR)
    assert "broken.py:" in build.verdict.reason


TABLE = "static const unsigned char code[] = {" + ", ".join(str(37 * at % 256) for at in range(600)) + "};\n"
PUT_TOGETHER = """
table = "static const unsigned char code[] = {" + ", ".join(str(37 * at % 256) for at in range(600)) + "};\\n"
"""


def test_the_text_that_is_compiled_is_looked_at_and_not_the_candidates_file(build_pool):
    source = PUT_TOGETHER + LIGHT_CANDIDATE.replace("SOURCE, extra", "table + SOURCE, extra")
    assert "may carry machine code as bytes or as numbers: main.cpp" in built(build_pool, "put_together", source).unproven


def test_a_header_beside_it_is_looked_at_too(build_pool):
    table = build_pool.write("beside", "").path.with_name("table.h")
    table.write_text(TABLE)
    included = LIGHT_CANDIDATE.replace("#include <Python.h>", f'#include <Python.h>\n#include "{table}"')
    assert built(build_pool, "beside", included).unproven.endswith("numbers: table.h")


WRITES = """
import os, pathlib, tempfile
place = pathlib.Path(os.environ["TMPDIR"])
(place / "written.h").write_text("#define TIMES 2")
"""


def test_a_header_that_it_may_write_again_proves_nothing(build_pool):
    source = WRITES + LIGHT_CANDIDATE.replace("return x * 2;", "return x * TIMES;").replace(
        "#include <Python.h>", '#include <Python.h>\n#include "written.h"'
    ).replace('extra_cflags=["-O0"]', 'extra_cflags=["-O0"], extra_include_paths=[str(place)]')
    build = built(build_pool, "writes_header", source)
    assert build.verdict is None, build.verdict
    assert build.unproven.endswith("wrote while it was imported: written.h")


def test_a_source_that_it_wrote_is_compiled_as_it_was_at_the_call(build_pool):
    source = WRITES + LIGHT_CANDIDATE.replace("load_inline", "load").replace(
        'load("light", SOURCE, extra_cflags=["-O0"], no_implicit_headers=True)',
        '(place / "light.cpp").write_text(SOURCE) and load("light", [str(place / "light.cpp")], extra_cflags=["-O0"])',
    )
    build = built(build_pool, "writes_source", source)
    assert build.verdict is None, build.verdict
    assert build.unproven == "" and len(build.extensions) == 1


@pytest.mark.parametrize("included", [
    '#include "{0}/table.h"', '# 1 "main.cpp" 3\n#include "{0}/table.h"', '#include "{0}/systems.h"', "#include <table.h>",
], ids=["plainly", "as if it were the system's", "through the system's", "from a folder that is said to be the system's"])
def test_a_header_is_looked_at_whosever_it_is_said_to_be(build_pool, included):
    folder = build_pool.write("systems", "").path.parent
    (folder / "table.h").write_text(TABLE)
    (folder / "systems.h").write_text('#pragma GCC system_header\n#include "table.h"\n')
    source = LIGHT_CANDIDATE.replace("#include <Python.h>", f"#include <Python.h>\n{included.format(folder)}").replace(
        'extra_cflags=["-O0"]', f'extra_cflags=["-O0", "-isystem{folder}"]'
    )
    build = built(build_pool, "systems", source)
    assert build.verdict is None, build.verdict
    assert build.unproven.endswith("numbers: table.h")


def test_a_source_of_the_assemblers_is_looked_at(build_pool):
    folder = build_pool.write("assembled", "").path.parent
    (folder / "light.cpp").write_text("")
    (folder / "table.s").write_text(".byte " + ", ".join(str(37 * at % 256) for at in range(600)) + "\n")
    source = LIGHT_CANDIDATE.replace("load_inline", "load").replace(
        'load("light", SOURCE, extra_cflags=["-O0"], no_implicit_headers=True)',
        f'''(pathlib.Path("{folder}/light.cpp").read_text() or True) and load(
            "light", ["{folder}/table.s", "{folder}/light.cpp"], extra_cflags=["-O0"])''',
    ).replace("import torch\n", "import pathlib\nimport torch\n", 1)
    (folder / "light.cpp").write_text(source.partition('r"""')[2].partition('"""')[0])
    build = built(build_pool, "assembled", source)
    assert build.verdict is None, build.verdict
    assert build.unproven.endswith("numbers: table.s")
