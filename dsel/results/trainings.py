"""The axes on which the cube shows the sets of training rows."""

from dataclasses import dataclass

from dsel import names


@dataclass(frozen=True)
class TrainingAxes:
    """Axes of the trainings, in the C order of their numbers."""

    dims: tuple[str, ...]
    """``("fold",)``, or ``("repeat", "half")`` in co-validation."""
    shape: tuple[int, ...]
    """Length of each dimension."""
    compared: tuple[str, ...]
    """The dimensions that count disagreements: those of `dims` but the halves."""

    @property
    def compared_shape(self) -> tuple[int, ...]:
        """Length of each dimension of `compared`."""
        sizes = dict(zip(self.dims, self.shape, strict=True))
        return tuple(sizes[dim] for dim in self.compared)


def fold_axes(n_folds: int) -> TrainingAxes:
    """Return the axes of cross-validation.

    Parameters
    ----------
    n_folds
        Number of folds, at least 1.

    Examples
    --------
    >>> fold_axes(10)
    TrainingAxes(dims=('fold',), shape=(10,), compared=('fold',))
    """
    return TrainingAxes((names.FOLD,), (n_folds,), (names.FOLD,))


def half_axes(n_repeats: int) -> TrainingAxes:
    """Return the axes of co-validation: two halves in each repeat, then compared.

    Parameters
    ----------
    n_repeats
        Number of times that the labeled rows are halved, at least 1.

    Examples
    --------
    >>> half_axes(30).compared_shape
    (30,)
    """
    return TrainingAxes(
        (names.REPEAT, names.HALF), (n_repeats, 2), compared=(names.REPEAT,)
    )
