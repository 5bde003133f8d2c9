"""What notebooks show: cards with all that is printed, escaped, without a script."""

import re
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

import dsel

pytestmark = pytest.mark.contract

X, Y = make_classification(700, 5, random_state=0)
NAMES = np.array(["<b>no</b>", "yes"])[Y]


class Text(HTMLParser):
    """Collects the text of a page, and refuses what is not closed."""

    def __init__(self, page):
        super().__init__()
        self.open, self.found = [], []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        assert tag not in ("script", "b")
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1] != "style":
            self.found.append(data)


def text_of(page):
    whole = page.replace("<wbr>", "")  # it may stand inside of a word
    return " ".join(" ".join(Text(whole).found).split())


@pytest.fixture(scope="module")
def shown():
    """Everything that has a card, by name."""
    plan = dsel.plan_search(
        LogisticRegression(), {"C": [0.1, 1.0]}, X[:300], NAMES[:300], X[300:600],
        random_state=0, report=True,
    )  # fmt: skip
    outcome = plan.run()
    models = outcome.models
    return {
        "plan": plan,
        "pool": plan.search.pool,
        "outcome": outcome,
        "choice": outcome.choice,
        "certificate": outcome.certificate,
        "report": outcome.certified_report(),
        "comparison": dsel.compare_models(
            models["one_fold"], models["all_rows"], X[600:]
        ),
        "monitor": outcome.monitor(X[600:]),
    }


CARDS = ["plan", "pool", "outcome", "choice", "certificate", "report", "comparison"]


@pytest.mark.parametrize("name", [*CARDS, "monitor"])
def test_card__is_html_without_script_that_says_what_is_printed(shown, name):
    card = shown[name]._repr_html_()
    # What the figure has is text for readers who do not see it.
    text = " ".join([text_of(card), *re.findall('aria-label="([^"]*)"', card)])
    printed = str(shown[name])
    assert {*re.findall(r"[\d,.]+%", printed)} <= {*re.findall(r"[\d,.]+%", text)}
    for word in re.findall(r"[a-z]{5,}", printed):
        assert name == "pool" or word in text


def test_card__of_an_outcome_has_the_figure_of_its_bounds(shown, monkeypatch):
    card = shown["outcome"]._repr_html_()
    assert card.count("<svg") == 1
    figure = card[card.index("<svg") : card.index("</svg>")]
    # In the color of the text around it, and without rules for the rest of the page.
    assert "currentColor" in figure
    assert "<style" not in figure
    assert "<svg" not in shown["choice"]._repr_html_()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "<svg" not in shown["outcome"]._repr_html_()


class Terminal:
    """Standard output as a terminal of 50 columns."""

    def __init__(self, stream):
        self.stream = stream

    def __getattr__(self, name):
        return getattr(self.stream, name)

    def isatty(self):
        return True


def test_lines__are_wrapped_at_the_width_of_a_terminal(shown, monkeypatch):
    whole = str(shown["choice"])
    monkeypatch.setenv("COLUMNS", "50")
    assert str(shown["choice"]) == whole  # a pipe gets a line for each statement
    monkeypatch.setattr(sys, "stdout", Terminal(sys.stdout))
    lines = str(shown["choice"]).splitlines()
    assert max(map(len, lines)) <= 50
    assert len(lines) > len(whole.splitlines())
    # A name is not repeated.
    names = [line.partition("  ")[0] for line in whole.splitlines()]
    once = [
        line.removeprefix(name) if name == before else line
        for line, name, before in zip(
            whole.splitlines(), names, ["", *names], strict=False
        )
    ]
    assert names.count("Compare") == 1  # what the bound is compared with is one row
    assert " ".join(" ".join(lines).split()) == " ".join(" ".join(once).split())


def test_card__of_what_is_refuted_or_unproved_has_another_edge(shown):
    alarm = 'class="dsel-card dsel-alarm"'
    outcome = shown["outcome"]
    assert alarm not in outcome._repr_html_()
    assert alarm not in outcome.monitor(X[600:])._repr_html_()
    assert alarm in outcome.monitor(X[600:] + 9)._repr_html_()
    copies = dsel.certify(
        LogisticRegression(), X[:90], NAMES[:90], X[:90], random_state=0
    )
    assert alarm in copies.certificates["all_rows"]._repr_html_()
