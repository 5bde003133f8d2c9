"""The record of a search's counts, whose fields are variables of the cube."""

from dataclasses import fields

from dsel import names
from dsel.search.engine.counts import KnownCounts, SearchCounts

OTHERS = {"known", "pool", "messages", "evidence"}


def test_counts__have_the_names_of_the_cube():
    listed = {each.name for each in (*fields(KnownCounts), *fields(SearchCounts))}
    assert listed - OTHERS <= set(names.BY_NAME)
    assert not OTHERS & set(names.BY_NAME)
