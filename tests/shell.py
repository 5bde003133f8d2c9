"""Commands of the shell, run in this process."""

from click.testing import CliRunner

from dsel.cli import main

OWN_CODE = """
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

class Own(GaussianNB):
    pass

def halved(X):
    return X / 2

def pipeline():
    return make_pipeline(FunctionTransformer(halved), Own())
"""
"""A module with a model of the user's own."""


def run(*arguments):
    """Run ``dsel ARGUMENTS``, of any types; return the exit status and the output."""
    return CliRunner().invoke(main, list(map(str, arguments)))


def succeed(*arguments):
    """Run a command, whose exit status must be 0."""
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    return done
