"""The identity of a plan, by which a store recognizes it: all except the rows."""

from hashlib import blake2b

from sklearn import get_config

from dsel.arrays import Floats
from dsel.criteria.base import Criterion
from dsel.data.identity import exact_text
from dsel.search.design.baseline import Baseline
from dsel.search.design.folds import CVScheme
from dsel.search.engine.jobs import JobContext
from dsel.search.planning.plan_design import SearchDesign
from dsel.search.planning.plan_inputs import SearchInputs
from dsel.search.planning.plan_options import SearchOptions


def plan_identity(
    options: SearchOptions,
    inputs: SearchInputs,
    design: SearchDesign,
    context: JobContext,
    *,
    criterion: Criterion,
    prior: Floats | None,
    baseline: Baseline | None,
) -> dict[str, str]:
    """Return the identity of a plan: texts and hashes by name.

    Names and texts are in the stores of users, so none of them may change.
    """
    losses, fitting = context.losses, context.fitting_pool
    keys = [group.keys for group in context.candidate_groups]
    certificate = design.method.name or "none"
    identity = {
        "estimator": short_hash(exact_text(inputs.estimator)),
        "candidates": short_hash(keys),
        "certificate": f"{certificate}, {criterion.name}, delta={options.delta:g}",
        "splits": splits_text(design.scheme),
        "prune": design.prune or "no",
        "deploy": design.deploy,
        "loss": repr(losses.main),
        "report": repr(losses.tolerances or losses.reported or None),
        "max_pool_rows": str(options.max_pool_rows),
        "fit_params": short_hash(exact_text(inputs.fit_params)),
        "transform_output": str(get_config()["transform_output"]),
        "seed": str(inputs.seed),
    }
    # Options that came later stand here only where they are used: other plans keep the
    # identity that their stores have.
    if fitting is not None and fitting.other_records:
        identity["other_records"] = "declared"
    if losses.by_value is not None:
        identity["report_by"] = losses.by_value.column.name
    if prior is not None:
        identity["prior"] = short_hash(prior.tolist())
    if options.n_queries:
        identity["n_queries"] = str(options.n_queries)
    if baseline is not None:
        identity["baseline"] = baseline.identity
    if inputs.groups is not None:
        identity["groups"] = inputs.groups.token
    return identity


def splits_text(scheme: CVScheme) -> str:
    """Return a text that identifies the splits of a scheme."""
    return f"{scheme.n_folds}, {scheme.token}"


def short_hash(value: object) -> str:
    """Return a hash of a value's text."""
    return blake2b(str(value).encode(), digest_size=12).hexdigest()
