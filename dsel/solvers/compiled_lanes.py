"""Loops over the models of a pair of classes that LLVM does not vectorise by itself.

It would have to know that the arrays that are written are none of those that are read.
Imported only where votes are counted.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 16  # models of which products are taken at a time
ROWS = 4  # rows of which products are taken at a time
SUMS = 4  # sums whose sum is a row's product
SIZE = ir.IntType(64)


class Lanes:
    """Instructions on vectors of LANES numbers."""

    def __init__(self, context: Any, builder: Any, signature: Any, given: Any) -> None:
        self.context, self.builder = context, builder
        self.signature, self.given = signature, given

    def start(self, argument: int, place: Any = 0) -> Any:
        """Return the address of an element of an array argument."""
        kind = self.context.make_array(self.signature.args[argument])
        data = kind(self.context, self.builder, self.given[argument]).data
        return self.builder.gep(data, [place if place else SIZE(0)])

    def load(self, start: Any) -> Any:
        """Return the LANES numbers from an address on, which need not be aligned."""
        kind = start.type.pointee
        address = self.builder.bitcast(start, ir.VectorType(kind, LANES).as_pointer())
        return self.builder.load(address, align=1)

    def store(self, numbers: Any, start: Any) -> None:
        """Write LANES numbers from an address on."""
        address = self.builder.bitcast(start, numbers.type.as_pointer())
        self.builder.store(numbers, address, align=1)

    def spread(self, number: Any) -> Any:
        """Return LANES times a number."""
        blank = ir.Constant(ir.VectorType(number.type, LANES), ir.Undefined)
        first = self.builder.insert_element(blank, number, ir.IntType(32)(0))
        all_zero = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        return self.builder.shuffle_vector(first, blank, all_zero)

    def add_product(self, total: Any, first: Any, second: Any) -> Any:
        """Return total + first * second, rounded once where the processor can."""
        term = self.builder.fmul(first, second, flags=("contract",))
        return self.builder.fadd(total, term, flags=("contract",))


def _add_products(
    typing_context: Any,
    values: Any,
    rows: Any,
    columns: Any,
    begin: Any,
    end: Any,
    weights: Any,
    out: Any,
) -> Any:
    """Write sums over t of values[r, columns[t]] * weights[t, m] for ROWS rows r.

    `weights` is (n_terms, LANES) and `out` (ROWS * LANES,), both of the type of the
    values; t goes from `begin` to `end`. Matrix products of a library are as fast for
    hundreds of rows, but for a few their packing and calls cost as much again.
    """

    def emit(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        lanes = Lanes(context, builder, signature, given)
        matrix = context.make_array(signature.args[0])(context, builder, given[0])
        width = builder.extract_value(matrix.shape, 1)
        numbers = [builder.load(lanes.start(1, SIZE(k))) for k in range(ROWS)]
        starts = [lanes.start(0, builder.mul(number, width)) for number in numbers]
        kind = ir.VectorType(starts[0].type.pointee, LANES)
        new: Any = cgutils.alloca_once_value
        zero = ir.Constant(kind, [0.0] * LANES)
        # Sums that are added to in turn do not wait for each other, and round less.
        sums = [[new(builder, zero) for _ in starts] for _ in range(SUMS)]

        def add(t: Any, totals: Any) -> None:
            weight = lanes.load(lanes.start(5, builder.mul(t, SIZE(LANES))))
            column = builder.load(lanes.start(2, t))
            for start, total in zip(starts, totals, strict=True):
                value = lanes.spread(builder.load(builder.gep(start, [column])))
                more = lanes.add_product(builder.load(total), value, weight)
                builder.store(more, total)

        loop, (begin, end), step = cgutils.for_range_slice, given[3:5], SIZE(SUMS)
        whole = builder.mul(builder.sdiv(builder.sub(end, begin), step), step)
        middle = builder.add(begin, whole)
        with loop(builder, begin, middle, step, SIZE) as (t, _):
            for k, totals in enumerate(sums):
                add(builder.add(t, SIZE(k)), totals)
        with loop(builder, middle, end, SIZE(1), SIZE) as (t, _):
            add(t, sums[0])
        for row in range(ROWS):
            parts = [builder.load(totals[row]) for totals in sums]
            first, second = builder.fadd(*parts[:2]), builder.fadd(*parts[2:])
            lanes.store(builder.fadd(first, second), lanes.start(6, SIZE(row * LANES)))
        return context.get_dummy_value()

    n = types.intp
    return types.void(values, rows, columns, n, n, weights, out), emit


def _compare_lanes(  # noqa: PLR0913
    typing_context: Any,
    first: Any,
    second: Any,
    bound: Any,
    sizes: Any,
    sign: Any,
    other: Any,
    few: Any,
    most: Any,
    few_other: Any,
    most_other: Any,
    rivals: Any,
    lowest: Any,
) -> Any:
    """Enter the decisions between two classes into what is known of both.

    Parameters
    ----------
    first, second
        What the support vectors of either class add to the decisions, (LANES,).
    bound
        As `bounds` of `compiled_votes.settle`, (5 * LANES,).
    sizes
        Peaks of the classes i < j and error of the row.
    sign
        1 if the class that is compared is i, else -1.
    other
        Place of the other class.
    few, most, few_other, most_other
        Fewest and most pairs that either class may win, (LANES,) each, updated.
    rivals, lowest
        The class with the smallest decision, and that, (LANES,) each, updated.
    """

    def emit(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        lanes = Lanes(context, builder, signature, given)
        real = ir.VectorType(ir.DoubleType(), LANES)

        def widened(numbers: Any) -> Any:
            return numbers if numbers.type == real else builder.fpext(numbers, real)

        terms = [widened(lanes.load(lanes.start(place))) for place in (0, 1)]
        bounds = [lanes.load(lanes.start(2, SIZE(k * LANES))) for k in range(5)]
        sizes = [lanes.spread(builder.load(lanes.start(3, SIZE(k)))) for k in range(3)]
        ahead = builder.fadd(builder.fadd(*terms), bounds[0])
        ahead = builder.fmul(ahead, lanes.spread(given[4]))
        error = bounds[4]
        for size, factor in zip(sizes, bounds[1:4], strict=True):
            error = lanes.add_product(error, size, factor)
        whole = ir.VectorType(ir.IntType(16), LANES)
        won = builder.fcmp_ordered(">", ahead, error)
        lost = builder.fcmp_ordered("<", ahead, builder.fneg(error))
        won, lost = builder.zext(won, whole), builder.zext(lost, whole)
        for place, change, by in (
            (6, builder.add, won), (7, builder.sub, lost),
            (8, builder.add, lost), (9, builder.sub, won),
        ):  # fmt: skip
            start = lanes.start(place)
            lanes.store(change(lanes.load(start), by), start)
        least, rivals = lanes.start(11), lanes.start(10)
        lower = builder.fcmp_ordered("<", ahead, lanes.load(least))
        lanes.store(builder.select(lower, ahead, lanes.load(least)), least)
        number = lanes.spread(builder.trunc(given[5], ir.IntType(16)))
        lanes.store(builder.select(lower, number, lanes.load(rivals)), rivals)
        return context.get_dummy_value()

    kinds = (first, second, bound, sizes, types.float64, types.intp, few, most,
             few_other, most_other, rivals, lowest)  # fmt: skip
    return types.void(*kinds), emit


add_products: Any = intrinsic(_add_products)
compare_lanes: Any = intrinsic(_compare_lanes)
