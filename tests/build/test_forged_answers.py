"""Answers that no builder of ours would send: refused at once, or read no further than they reach."""

from __future__ import annotations

import os
import time
from dataclasses import replace

import pytest

from harness.model.verdict import ReasonCode, Status

from .conftest import PLAIN_CANDIDATE

pytestmark = pytest.mark.processes

FORGED = """
import json, os, socket, struct, sys
huge = os.path.join(os.environ["HOME"], "huge.so")
with open(huge, "wb") as file:
    file.truncate((4 << 30) - 1)
answer = {"extensions": [], "log": "", "failure": None, "warnings": [], "files": []}
answer.update(FORGERY)
body = json.dumps(answer).encode()
socket.socket(fileno=int(sys.argv[1])).sendall(struct.pack(">I", len(body)) + body)
os._exit(0)
"""
EXTENSION = '{"key": "a", "path": huge, "module_name": "a", "is_python_module": True, "cuda": False, "headers": "slim"}'


def _forging(forgery: str) -> str:
    return FORGED.replace("FORGERY", forgery) + PLAIN_CANDIDATE


@pytest.mark.parametrize("forgery, said", [
    ('{"files": 20000 * [huge]}', "names files of 4.3 GB"),
    ('{"files": [f"{huge}{number}" for number in range(9000)]}', "names 9000 files"),
    ('{"files": ["/proc/kcore"]}', "names files of"),
    (f'{{"extensions": 3 * [{EXTENSION}]}}', "extensions of 12.9 GB"),
    (f'{{"extensions": 999 * [{EXTENSION}]}}', "999 extensions"),
])
def test_an_answer_that_would_keep_the_judge_hashing_and_copying_is_refused_at_once(build_pool, forgery, said):
    if "kcore" in forgery and not os.path.isfile("/proc/kcore"):
        pytest.skip("no /proc/kcore here")
    began = time.monotonic()
    (build,) = build_pool.build(build_pool.write("forged", _forging(forgery)))
    assert build.verdict.status is Status.REJECTED and build.verdict.reason_code is ReasonCode.PROTOCOL
    assert said in build.verdict.reason
    assert time.monotonic() - began < 30


def test_a_file_without_an_end_is_hashed_as_far_as_its_size_says(build_pool):
    (build,) = build_pool.build(build_pool.write("forged", _forging('{"files": ["/proc/kmsg"]}')))
    assert build.verdict is None


def test_searching_a_log_of_one_endless_line_takes_no_longer_than_reading_it(build_pool):
    line = '4_000_000 // 12 * "instruction "'
    forgery = f'{{"failure": {{"kind": "compile_error", "message": "", "log": {line}}}}}'
    began = time.monotonic()
    (build,) = build_pool.build(build_pool.write("forged", _forging(forgery)))
    assert build.verdict.reason_code is ReasonCode.COMPILE_ERROR
    assert time.monotonic() - began < 30


TAKES_LONG = """
import json, os, socket, struct, sys, time
channel = socket.socket(fileno=int(sys.argv[1]))


def send(frame):
    body = json.dumps(frame).encode()
    channel.sendall(struct.pack(">I", len(body)) + body)


for _ in range(TIMES):
    time.sleep(3.0)
    send({"begins_again": True})
time.sleep(3.0)
send({"extensions": [], "log": "", "failure": None, "warnings": [], "files": []})
os._exit(0)
"""


@pytest.mark.parametrize(("times", "status"), [(0, None), (1, None), (2, Status.REJECTED)])
def test_the_time_is_counted_anew_where_a_build_begins_again_and_once(build_pool, times, status):
    build_pool.settings = replace(build_pool.settings, build_timeout_s=5)
    source = TAKES_LONG.replace("TIMES", str(times)) + PLAIN_CANDIDATE
    (build,) = build_pool.build(build_pool.write("long", source))
    assert (build.verdict and build.verdict.status) == status, build.verdict


ASKS = """
import json, os, socket, struct, sys
channel = socket.socket(fileno=int(sys.argv[1]))


def send(frame):
    body = json.dumps(frame).encode()
    channel.sendall(struct.pack(">I", len(body)) + body)


send(QUESTION)
size = struct.unpack(">I", channel.recv(4, socket.MSG_WAITALL))[0]
came = json.loads(channel.recv(size, socket.MSG_WAITALL))
send({"extensions": [], "log": "", "failure": None, "warnings": [json.dumps(came["failure"])], "files": []})
os._exit(0)
"""
CALL = '{"kind": "load_inline", "arguments": {"name": "mine", "cuda_sources": "__global__ void f() {}", "no_implicit_headers": True}, "texts": {}, "state": STATE}'


@pytest.mark.parametrize("question", ['{"compile": 1}', '{"compile": {"arguments": {}}}', '{"compile": {"arguments": 7, "state": {"common": 3}}}'])
def test_a_question_that_no_builder_of_ours_asks_is_the_candidates_fault(build_pool, question):
    (build,) = build_pool.build(build_pool.write("asks", ASKS.replace("QUESTION", question) + PLAIN_CANDIDATE))
    assert (build.verdict.status, build.verdict.reason_code) == (Status.REJECTED, ReasonCode.PROTOCOL), build.verdict


def test_who_asks_names_no_compiler_of_his_own(build_pool):
    """The compiling process starts nvcc as the judge knows it, wherever the question says that one is."""
    build_pool.write("plain", PLAIN_CANDIDATE)
    mine = build_pool.folder / "nvcc"
    mine.write_text("#!/bin/sh\necho started by the candidate\nexit 1\n")
    mine.chmod(0o755)
    call = CALL.replace("STATE", '{"common": [], "architectures": None}')
    question = f'{{"compile": {call}, "slim_headers": False, "nvcc": {str(mine)!r}, "sms": ["sm_90"], "without_gpu": True}}'
    (build,) = build_pool.build(build_pool.write("asks", ASKS.replace("QUESTION", question) + PLAIN_CANDIDATE))
    assert "started by the candidate" not in f"{build.log}{build.warnings}{build.verdict}"
