"""Readers of tables are tested with the words of the shell, which names options."""

import pytest

from dsel.argument_words import keep_options


@pytest.fixture(autouse=True)
def words_of_the_shell():
    with keep_options():
        yield
