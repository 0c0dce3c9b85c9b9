"""What other threads of Python's do during a profiled launch is noticed."""

from __future__ import annotations

import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor

import torch


def test_what_another_thread_of_pythons_does_meanwhile_is_noticed(listed):
    with ThreadPoolExecutor(1) as pool:
        pool.submit(torch.matmul, torch.rand(8, 8), torch.rand(8, 8)).result()
        found = listed(lambda a, b: pool.submit(lambda: sum(torch.matmul(a, b) for _ in range(8))).result())
        assert found["others_us"] > 0.3 * found["total_us"]
        assert not found["others_began"]
        idle = listed(lambda a, b: sum(torch.matmul(a, b) for _ in range(8)))
        assert idle["others_us"] < 0.05 * idle["total_us"]


def test_a_thread_or_a_process_that_begins_meanwhile_is_noticed(listed):
    def in_a_thread(a, b):
        thread = threading.Thread(target=torch.matmul, args=(a, b))
        thread.start()
        thread.join()
        return a

    def in_a_process(a, b):
        subprocess.run(["true"], check=True)
        return a

    assert listed(in_a_thread)["others_began"]
    assert listed(in_a_process)["others_began"]
    assert not listed(torch.matmul)["others_began"]


def test_an_operator_is_listed_in_whatever_thread_it_runs(listed):
    with ThreadPoolExecutor(1) as pool:
        pool.submit(torch.matmul, torch.rand(8, 8), torch.rand(8, 8)).result()
        found = listed(lambda a, b: pool.submit(torch.matmul, a, b).result())
    assert {each["name"]: each["us"] for each in found["operators"]}["aten::mm"] > 0.3 * found["total_us"]
