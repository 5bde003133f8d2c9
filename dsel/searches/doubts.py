"""What the counts of a finished search say against the number of its choice."""

import numpy as np

from dsel import names
from dsel.bounds import pair_error_bound
from dsel.criteria import Criterion, Evidence, Settings
from dsel.criteria.co_validation import pool_disagreement


def remarks_on(
    rule: Criterion, counts: Evidence, settings: Settings, chosen: int
) -> tuple[str, ...]:
    """Return remarks on failed fits, and on disagreements that are too large."""
    doubts = (
        _failures(counts),
        _too_disputed(rule, counts, chosen),
        _contradiction(counts, settings, chosen),
    )
    return tuple(filter(None, doubts))


def _failures(counts: Evidence) -> str:
    n_failed = int((counts[names.STATUS] == names.STATUS_FAILED).sum())
    return f"{n_failed} candidates failed" if n_failed else ""


def _too_disputed(rule: Criterion, counts: Evidence, chosen: int) -> str:
    """Return a remark where halves differ more than independent models on average."""
    # Bounds need disagreements too, but only estimates need the number of classes.
    if not {names.DISAGREEMENTS, names.N_CLASSES} <= set(rule.needs):
        return ""
    limit = 1.0 - 1.0 / int(counts[names.N_CLASSES])
    rate = float(pool_disagreement(counts)[chosen])
    if rate <= limit:
        return ""
    return (
        f"halves differ on {rate:.3g} of the pool, more than the {limit:.3g} that "
        f"independent models can expect; the error read from it is cut there"
    )


def _contradiction(counts: Evidence, settings: Settings, chosen: int) -> str:
    """Return a remark where models differ more than cross-validation's error allows.

    Two models that differ on a row cannot both be right there: half of the lower limit
    of their disagreement is one of their mean error, and needs no label.
    """
    rows, shares = counts[names.FOLD_ROWS], settings.delta_shares
    of_outer = names.OUTER_DISAGREEMENTS in counts
    if of_outer:  # the full model and each fold's, on the whole pool
        pairs, errors = counts[names.OUTER_DISAGREEMENTS], counts[names.OUTER_ERRORS]
        share = float(shares.sum())
    elif {names.FOLD_ERRORS, names.DISAGREEMENTS} <= set(counts):
        pairs, errors = (
            counts[name][chosen] for name in (names.DISAGREEMENTS, names.FOLD_ERRORS)
        )
        share = float(shares[chosen])
    else:
        return ""
    if (pairs < 0).any() or (errors < 0).any():
        return ""
    if rows.ndim == 1 and not of_outer:  # each fold has its part of the pool
        pairs = pairs.sum(keepdims=True)
    delta = share / len(pairs)
    limits = pair_error_bound(pairs, counts[names.N_UNLABELED], delta=delta)
    least, said = float(limits.mean()), float(np.mean(errors / rows))
    if round(least, 3) <= round(said, 3):  # as they are printed
        return ""
    return (
        f"contradiction: cross-validation says {100 * said:.1f} %, but its models "
        f"differ so often on the pool that they err on {100 * least:.1f} % of it or "
        f"more on average; labeled rows are few, unlike the pool, or not independent"
    )
