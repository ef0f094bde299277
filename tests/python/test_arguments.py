# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from argparse import ArgumentTypeError

import pytest

from ct2_triton.arguments import (
    count,
    duration,
    host_and_port,
    host_name,
    origin,
    port_number,
    public_address,
)


def test_good_numbers() -> None:
    assert count("1") == 1
    assert count("48") == 48
    assert duration("0.5") == 0.5
    assert duration("300") == 300
    assert port_number("0") == 0
    assert port_number("65535") == 65_535


@pytest.mark.parametrize("text", ["https://Talks.Example", "HTTPS://talks.example"])
def test_capitals_of_an_origin_do_not_count(text: str) -> None:
    assert origin(text) == "https://talks.example"
    assert host_and_port(text) == ("talks.example", 443)


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "many", "", "nan"])
def test_a_count_is_a_whole_number_of_1_or_more(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="is not a whole number of 1 or more"):
        count(text)


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "soon", ""])
def test_a_duration_is_finite_and_above_0(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="is not a number above 0"):
        duration(text)


@pytest.mark.parametrize("text", ["-1", "65536", "99999999999", "8e3", "http", "", "\u0663"])
def test_a_port_is_one_that_there_is(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="is not a port from 0 to 65535"):
        port_number(text)


@pytest.mark.parametrize(
    ("text", "name"),
    [("*", "*"), ("Example.com", "example.com"), ("example.com.", "example.com"), ("[::1]", "::1")],
)
def test_the_name_of_a_host(text: str, name: str) -> None:
    assert host_name(text) == name


@pytest.mark.parametrize("text", ["example.com:5000", "example.com:80", "https://example.com", ""])
def test_what_is_no_name_of_a_host(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="is not a host name; give"):
        host_name(text)


def test_an_address_for_visitors_may_have_a_path() -> None:
    assert public_address("https://www.example.com/t/") == "https://www.example.com/t"
    for text in ("www.example.com", "ftp://www.example.com", "https://www.example.com/?q=a"):
        with pytest.raises(ArgumentTypeError, match="is not an address; give"):
            public_address(text)
