"""Verification in several processes: the same tables in the same order, and no process takes others along."""

import os

import pytest
from helpers import ROOT
from rowproof.evidence.subjects import find_subjects, verify_all
from subjects_of_tests import killed, named


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "workflow"), str(ROOT / "tests")]))


def test_tables_come_in_the_order_of_the_subjects():
    tables = list(verify_all([named(str(n)) for n in range(6)], 2))
    assert [table.subject for table in tables] == [str(n) for n in range(6)]
    assert {table.checks[0].found for table in tables} == {"1 threads"}


def test_a_process_that_dies_is_a_check_that_could_not_be_made():
    tables = list(verify_all([named("a"), killed("b"), named("c"), killed("d"), named("e")], 2))
    assert [(table.subject, table.verdict) for table in tables] == [
        ("a", "pass"),
        ("b", "unknown"),
        ("c", "pass"),
        ("d", "unknown"),
        ("e", "pass"),
    ]
    assert [table.subject for table in tables if table.crashed] == ["b", "d"]


def test_one_process_and_several_say_the_same():
    subjects = find_subjects(ROOT / "results/push-v1")
    one, several = (list(verify_all(subjects, cores)) for cores in (1, 2))
    assert [table.as_json() for table in one] == [table.as_json() for table in several]
