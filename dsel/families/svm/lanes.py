"""Loops that LLVM does not vectorize by itself, as explicit vector instructions.

LLVM does not vectorize the loops of votes, because it cannot prove that the arrays that
are written and read do not overlap, nor the search for the position of a maximum in a
step of SMO. Like everything that imports numba, this module is imported only inside
functions that run compiled code.
"""

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils, event
from numba.extending import intrinsic

from dsel.runtime.progress import COMPILERS

if TYPE_CHECKING:
    from numba.core.base import BaseContext
    from numba.core.typing.context import Context
    from numba.core.typing.templates import Signature

LANES = 16  # models per vector in matrix products
ROWS = 4  # rows per call in matrix products
SUMS = 4  # partial sums of a row's product, so that additions need not wait
WIDTH = 16  # rows per vector in steps of SMO
AHEAD = 16  # blocks by which a kernel row is prefetched
TAU = 1e-12  # stands for a curvature that rounding made zero or negative
SIZE = ir.IntType(64)
REAL = ir.DoubleType()
FAST: Any = ("nnan", "nsz")
"""LLVM's fast-math flags: NaN does not occur; infinities do, because masks are 0 and
-inf. Flags that change a rounding must not be added."""
alloca: Any = cgutils.alloca_once_value
for_range: Any = cgutils.for_range
insert: Any = cgutils.get_or_insert_function


class CompileListener(event.Listener):
    """Listener by which the progress of a run shows that code is compiled.

    numba calls it when it compiles, and not when it reads compiled code from the disk.
    """

    def on_start(self, event: object) -> None:
        """Note that numba begins to compile a function, or one that this calls."""
        COMPILERS.begin()

    def on_end(self, event: object) -> None:
        """Note that numba has compiled it."""
        COMPILERS.end()


event.register("numba:compile", CompileListener())


def compile_with(
    *, fast: bool = False, inline: str = "never"
) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles by numba, with a cache on disk if possible.

    With `fast` the flags `FAST` apply to comparisons.
    """
    options: dict[str, Any] = {
        "nogil": True,
        "error_model": "numpy",
        "inline": inline,
        "fastmath": set(FAST) if fast else False,
    }

    def decorate(function: Callable[..., Any]) -> Any:
        try:
            return njit(cache=True, **options)(function)
        except RuntimeError:  # neither the package nor the user has a writable folder
            return njit(**options)(function)

    return decorate


class Lanes:
    """Instructions on vectors of LANES numbers, or of another count."""

    def __init__(
        self,
        context: "BaseContext",
        builder: ir.IRBuilder,
        signature: "Signature",
        arguments: Sequence[ir.Value],
        count: int = LANES,
    ) -> None:
        self.context, self.builder = context, builder
        self.signature, self.given, self.count = signature, arguments, count

    def start(self, argument: int, place: ir.Value | int = 0) -> Any:
        """Return the address of an element of an array argument."""
        kind = self.context.make_array(self.signature.args[argument])
        data = kind(self.context, self.builder, self.given[argument]).data
        return self.builder.gep(data, [place if place else SIZE(0)])

    def load(self, start: ir.Value) -> Any:
        """Return the numbers from an address on, which need not be aligned."""
        kind = ir.VectorType(start.type.pointee, self.count)
        return self.builder.load(
            self.builder.bitcast(start, kind.as_pointer()), align=1
        )

    def store(self, values: ir.Value, start: ir.Value) -> None:
        """Write numbers from an address on."""
        address = self.builder.bitcast(start, values.type.as_pointer())
        self.builder.store(values, address, align=1)

    def load_ahead(self, start: ir.Value) -> Any:
        """Load the numbers from an address on, and prefetch later ones.

        Kernel rows of large machines come from memory, not from the cache, and the
        processor prefetches too few of their lines by itself.
        """
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [start.type, word, word, word])
        fetch = insert(self.builder.module, kind, "llvm.prefetch.p0")
        later = self.builder.gep(start, [SIZE(AHEAD * self.count)])
        self.builder.call(fetch, [later, word(0), word(3), word(1)])  # to read, data
        return self.load(start)

    def spread(self, value: ir.Value) -> Any:
        """Return a number in all lanes."""
        blank = ir.Constant(ir.VectorType(value.type, self.count), ir.Undefined)
        first = self.builder.insert_element(blank, value, ir.IntType(32)(0))
        all_zero = self.constants(ir.IntType(32), [0] * self.count)
        return self.builder.shuffle_vector(first, blank, all_zero)

    def constants(self, kind: ir.Type, values: list[float]) -> Any:
        """Return a constant vector."""
        return ir.Constant(ir.VectorType(kind, self.count), values)

    def larger(self, first: ir.Value, second: ir.Value) -> Any:
        """Return the larger of two vectors, lane by lane."""
        is_first = self.builder.fcmp_ordered(">", first, second, flags=FAST)
        return self.builder.select(is_first, first, second)

    def largest(self, values: ir.Value) -> Any:
        """Return the largest lane of a vector of floats or integers of 64 bits."""
        is_real = values.type.element == REAL
        name = f"fmax.v{self.count}f64" if is_real else f"smax.v{self.count}i64"
        kind = ir.FunctionType(values.type.element, [values.type])
        reduce = insert(self.builder.module, kind, f"llvm.vector.reduce.{name}")
        return self.builder.call(reduce, [values], fastmath=FAST if is_real else ())

    def last_largest(
        self, n_blocks: ir.Value, values_of: Callable[[ir.Value], ir.Value]
    ) -> Any:
        """Return the last position of the largest value in blocks of `count` values.

        `values_of` takes the number of a block and returns its values, without NaN.
        """
        builder, new = self.builder, alloca
        most = new(builder, self.constants(REAL, [float("-inf")] * self.count))
        place = new(builder, self.constants(SIZE, [0] * self.count))
        with for_range(builder, n_blocks) as loop:
            values, before = values_of(loop.index), builder.load(most)
            # Each lane keeps its last block of equals, and the largest position among
            # the lanes with the maximum is then the last of all.
            is_last = builder.fcmp_ordered(">=", values, before, flags=FAST)
            builder.store(builder.select(is_last, values, before), most)
            block_index = self.spread(loop.index)
            block_index = builder.select(is_last, block_index, builder.load(place))
            builder.store(block_index, place)
        lane_indices = self.constants(SIZE, list(range(self.count)))
        size = self.constants(SIZE, [self.count] * self.count)
        places = builder.add(builder.mul(builder.load(place), size), lane_indices)
        values = builder.load(most)
        is_most = builder.fcmp_ordered("==", values, self.spread(self.largest(values)))
        nowhere = self.constants(SIZE, [0] * self.count)
        return self.largest(builder.select(is_most, places, nowhere))

    def n_blocks(self, argument: int) -> Any:
        """Return how many blocks of `count` numbers an array argument has."""
        kind = self.context.make_array(self.signature.args[argument])
        array = kind(self.context, self.builder, self.given[argument])
        length = self.builder.extract_value(array.shape, 0)
        return self.builder.sdiv(length, SIZE(self.count))

    def add_product(self, total: ir.Value, first: ir.Value, second: ir.Value) -> Any:
        """Return total + first * second, rounded once where the processor can."""
        term = self.builder.fmul(first, second, flags=("contract",))
        return self.builder.fadd(total, term, flags=("contract",))


def _add_products(
    typing_context: "Context",
    values: types.Type,
    rows: types.Type,
    columns: types.Type,
    begin: types.Type,
    end: types.Type,
    weights: types.Type,
    out: types.Type,
) -> Any:
    """Write sums over t of values[r, columns[t]] * weights[t, m] for ROWS rows r.

    `weights` is (n_terms, LANES) and `out` (ROWS * LANES,), both of the type of the
    values; t goes from `begin` to `end`. Matrix products of a library are as fast for
    hundreds of rows, but for a few their packing and calls cost as much again.
    """

    def emit(
        context: "BaseContext",
        builder: ir.IRBuilder,
        signature: "Signature",
        arguments: Sequence[ir.Value],
    ) -> Any:
        lanes = Lanes(context, builder, signature, arguments)
        matrix = context.make_array(signature.args[0])(context, builder, arguments[0])
        width = builder.extract_value(matrix.shape, 1)
        numbers = [builder.load(lanes.start(1, SIZE(k))) for k in range(ROWS)]
        starts = [lanes.start(0, builder.mul(number, width)) for number in numbers]
        kind = ir.VectorType(starts[0].type.pointee, LANES)
        zero = ir.Constant(kind, [0.0] * LANES)
        # Additions to different partial sums do not wait for each other, and shorter
        # sums round less.
        sums = [[alloca(builder, zero) for _ in starts] for _ in range(SUMS)]

        def add(t: ir.Value, totals: Sequence[ir.Value]) -> None:
            weight = lanes.load(lanes.start(5, builder.mul(t, SIZE(LANES))))
            column = builder.load(lanes.start(2, t))
            for start, total in zip(starts, totals, strict=True):
                value = lanes.spread(builder.load(builder.gep(start, [column])))
                more = lanes.add_product(builder.load(total), value, weight)
                builder.store(more, total)

        loop, (begin, end), step = cgutils.for_range_slice, arguments[3:5], SIZE(SUMS)
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


class At(IntEnum):
    """Positions of the arguments of `compare_lanes`, which numba passes as a list."""

    FIRST = 0
    SECOND = 1
    BOUND = 2
    SIZES = 3
    SIGN = 4
    OTHER = 5
    FEW = 6
    MOST = 7
    FEW_OTHER = 8
    MOST_OTHER = 9
    RIVALS = 10
    LOWEST = 11


def _compare_lanes(
    typing_context: "Context",
    first: types.Type,
    second: types.Type,
    bound: types.Type,
    sizes: types.Type,
    sign: types.Type,
    other: types.Type,
    few: types.Type,
    most: types.Type,
    few_other: types.Type,
    most_other: types.Type,
    rivals: types.Type,
    lowest: types.Type,
) -> Any:
    """Add the decisions between two classes i < j to the votes of both.

    `first` and `second` are the sums over the support vectors of either class, `bound`
    is that of `decisions.PairTerms.bounds`, and `sizes` are the peaks of both classes
    and the error of the row. `sign` is 1 if the class that is compared is i, else -1;
    `other` is the position of the other class.

    Three things are updated: the smallest and the largest number of pairs that each of
    the two classes may win; the rival, which is the class against which the decision
    value is smallest; and this smallest value, `lowest`.
    """

    def emit(
        context: "BaseContext",
        builder: ir.IRBuilder,
        signature: "Signature",
        arguments: Sequence[ir.Value],
    ) -> Any:
        lanes = Lanes(context, builder, signature, arguments)
        real = ir.VectorType(ir.DoubleType(), LANES)

        def widen(numbers: ir.Value) -> Any:
            return numbers if numbers.type == real else builder.fpext(numbers, real)

        both = At.FIRST, At.SECOND
        terms = [widen(lanes.load(lanes.start(place))) for place in both]
        bounds = [lanes.load(lanes.start(At.BOUND, SIZE(k * LANES))) for k in range(5)]
        sizes = [
            lanes.spread(builder.load(lanes.start(At.SIZES, SIZE(k)))) for k in range(3)
        ]
        ahead = builder.fadd(builder.fadd(*terms), bounds[0])
        ahead = builder.fmul(ahead, lanes.spread(arguments[At.SIGN]))
        error = bounds[4]
        for size, factor in zip(sizes, bounds[1:4], strict=True):
            error = lanes.add_product(error, size, factor)
        whole = ir.VectorType(ir.IntType(16), LANES)
        # Within its error the decision may be of either sign: a vote for both.
        won = builder.fcmp_ordered(">", ahead, error)
        lost = builder.fcmp_ordered("<", ahead, builder.fneg(error))
        won, lost = builder.zext(won, whole), builder.zext(lost, whole)
        for place, change, by in (
            (At.FEW, builder.add, won),
            (At.MOST, builder.sub, lost),
            (At.FEW_OTHER, builder.add, lost),
            (At.MOST_OTHER, builder.sub, won),
        ):
            start = lanes.start(place)
            lanes.store(change(lanes.load(start), by), start)
        least, rivals = lanes.start(At.LOWEST), lanes.start(At.RIVALS)
        lower = builder.fcmp_ordered("<", ahead, lanes.load(least))
        lanes.store(builder.select(lower, ahead, lanes.load(least)), least)
        number = lanes.spread(builder.trunc(arguments[At.OTHER], ir.IntType(16)))
        lanes.store(builder.select(lower, number, lanes.load(rivals)), rivals)
        return context.get_dummy_value()

    kinds = (
        first,
        second,
        bound,
        sizes,
        types.float64,
        types.intp,
        few,
        most,
        few_other,
        most_other,
        rivals,
        lowest,
    )
    return types.void(*kinds), emit


def _best_partner(
    typing_context: "Context",
    best: types.Type,
    own_diagonal: types.Type,
    row: types.Type,
    diagonal: types.Type,
    residual: types.Type,
    fall: types.Type,
) -> Any:
    """Return the row that gains most if paired with the first one, and the gap.

    This is the second-order choice of the working set by Fan, Chen and Lin (2005);
    among equals the last row wins, as in libsvm. `best` and `own_diagonal` are the
    first row's residual and its kernel with itself, `row` is its kernel row.
    `diagonal`, `residual` and `fall` have all rows, in whole blocks of WIDTH; `fall` is
    0, or -inf for rows that must not fall. The gap is the KKT violation.
    """

    def emit(
        context: "BaseContext",
        builder: ir.IRBuilder,
        signature: "Signature",
        arguments: Sequence[ir.Value],
    ) -> Any:
        lanes = Lanes(context, builder, signature, arguments, WIDTH)
        best, own_diagonal = map(lanes.spread, arguments[:2])
        zero, tau, two = (lanes.constants(REAL, [x] * WIDTH) for x in (0.0, TAU, 2.0))
        gap = alloca(builder, lanes.constants(REAL, [float("-inf")] * WIDTH))

        def gains_of(block: ir.Value) -> Any:
            at = builder.mul(block, SIZE(WIDTH))
            kernel = builder.fpext(lanes.load_ahead(lanes.start(2, at)), tau.type)
            own_other, residual, fall = (
                lanes.load(lanes.start(k, at)) for k in (3, 4, 5)
            )
            ahead = builder.fadd(builder.fsub(best, residual), fall)
            builder.store(lanes.larger(ahead, builder.load(gap)), gap)
            ahead = lanes.larger(ahead, zero)
            # The operations are in libsvm's order; a fused product would be rounded
            # once instead of twice.
            curvature = builder.fadd(own_diagonal, own_other)
            curvature = builder.fsub(curvature, builder.fmul(two, kernel))
            is_positive = builder.fcmp_ordered(">", curvature, zero)
            curvature = builder.select(is_positive, curvature, tau)
            return builder.fdiv(builder.fmul(ahead, ahead), curvature)

        partner = lanes.last_largest(lanes.n_blocks(4), gains_of)
        results = [partner, lanes.largest(builder.load(gap))]
        return context.make_tuple(builder, signature.return_type, results)

    pair: Any = types.Tuple([types.intp, types.float64])
    kinds = (types.float64, types.float64, row, diagonal, residual, fall)
    return pair(*kinds), emit


def _subtract_rows(
    typing_context: "Context",
    up: types.Type,
    first: types.Type,
    down: types.Type,
    second: types.Type,
    residual: types.Type,
    rise: types.Type,
) -> Any:
    """Subtract kernel rows times changes from the residuals; return the largest's row.

    `rise` is 0, or -inf for rows that must not rise and are never returned. The last of
    several rows with the largest residual is returned, as in libsvm.
    """

    def emit(
        context: "BaseContext",
        builder: ir.IRBuilder,
        signature: "Signature",
        arguments: Sequence[ir.Value],
    ) -> Any:
        lanes = Lanes(context, builder, signature, arguments, WIDTH)
        up, down = lanes.spread(arguments[0]), lanes.spread(arguments[2])

        def residuals_of(block: ir.Value) -> Any:
            at = builder.mul(block, SIZE(WIDTH))
            rising = builder.fpext(lanes.load(lanes.start(1, at)), up.type)
            falling = builder.fpext(lanes.load_ahead(lanes.start(3, at)), up.type)
            # Both products are added before they change the residual, as in libsvm.
            change = builder.fadd(builder.fmul(rising, up), builder.fmul(falling, down))
            changed = builder.fsub(lanes.load(lanes.start(4, at)), change)
            lanes.store(changed, lanes.start(4, at))
            return builder.fadd(changed, lanes.load(lanes.start(5, at)))

        return lanes.last_largest(lanes.n_blocks(4), residuals_of)

    kinds = (types.float64, first, types.float64, second, residual, rise)
    return types.intp(*kinds), emit


def _maximum(typing_context: "Context", a: types.Type, b: types.Type) -> Any:
    """Return the larger of two numbers of float32, neither of them NaN.

    A maximum written with `if` stays scalar, since LLVM needs flags on the comparison
    that numba does not pass on.
    """

    def emit(
        context: "BaseContext",
        builder: ir.IRBuilder,
        signature: "Signature",
        arguments: Sequence[ir.Value],
    ) -> Any:
        kind = ir.FloatType()
        shape = ir.FunctionType(kind, [kind, kind])
        maximum = builder.module.declare_intrinsic("llvm.maxnum", [kind], shape)
        return builder.call(maximum, arguments, fastmath=FAST)

    return types.float32(types.float32, types.float32), emit


best_partner: Any = intrinsic(_best_partner)
subtract_rows: Any = intrinsic(_subtract_rows)
add_products: Any = intrinsic(_add_products)
compare_lanes: Any = intrinsic(_compare_lanes)
larger: Any = intrinsic(_maximum)
