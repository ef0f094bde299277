# SPDX-License-Identifier: Apache-2.0
"""Whose work a stack of the server is, in the words of `perf script`."""

from __future__ import annotations

from measure_server import ENGINE, TRITON, UNKNOWN, part_of, read_stacks

PLUGIN = "/backends/ctranslate2/libtriton_ctranslate2.so"
STACKS = f"""
        7f00 malloc (/usr/lib/libc.so.6)
        7f01 std::vector<long>::resize(unsigned long) ({PLUGIN})
        7f02 ct2triton::IdsFront::Decode(ct2triton::RequestHandle const&) ({PLUGIN})
        7f03 triton::core::TritonModelInstance::Execute() (/opt/libtritonserver.so)

        7f04 futex ([kernel.kallsyms])
        7f05 grpc_impl::ServerAsyncWriter::Write() (/opt/tritonserver/bin/tritonserver)
        7f06 ct2triton::PendingRequest::SendAnswer() ({PLUGIN})
        7f07 ct2triton::DecodeLoop::Accept(ct2triton::LoopListener*) ({PLUGIN})
        7f08 ct2triton::DecodeLoop::Step(ct2triton::LoopListener*) ({PLUGIN})

        7f09 expf (/usr/lib/libm.so.6)
        7f0a ct2triton::DecodeLoop::Step(ct2triton::LoopListener*) ({PLUGIN})
        7f0b ct2triton::RunningLoop::Turn(std::vector<ct2triton::Job>) ({PLUGIN})

        7f0c [unknown] (/usr/lib/libc.so.6)
"""


def test_the_first_frame_from_the_leaf_that_says_it_counts() -> None:
    parts = [part_of(stack) for stack in read_stacks(STACKS.splitlines())]
    assert parts == ["requests in", TRITON, ENGINE, UNKNOWN]
