"""How large the house is: what is counted, and that the path it names is there."""

from __future__ import annotations


def test_the_path_lies_in_the_harness_and_every_figure_is_printed(benchmark_named, capsys):
    house = benchmark_named("house")
    assert all((house.REPOSITORY / path).is_file() for path in house.PATH)
    house.main()
    printed = capsys.readouterr().out
    assert [line.partition(":")[0] for line in printed.splitlines()] == [
        "harness", "packages", "functions", "modules above 500 lines", "modules with one importer",
        "file names that occur more than once", "the path",
    ]


def test_a_module_that_two_import_has_not_one_importer(benchmark_named):
    single = benchmark_named("house").with_one_importer()
    assert "harness.model.errors" not in single
    assert all(importer != module for module, importer in single.items())
