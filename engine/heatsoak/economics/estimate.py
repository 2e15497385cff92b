"""A number with its uncertainty, and how uncertainty is carried into what is computed of it. Pure.

Linear propagation for independent inputs (JCGM 100:2008, "GUM", 5.1.2): the half-widths of sums
add in quadrature, the relative half-widths of products and quotients do. For intervals as narrow
as a frozen one (a few per cent) the terms left out are below the digit that is printed. What is
not independent, such as a figure and itself, must not be combined here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Estimate:
    """One number as well as it is known."""

    mean: float
    u95: float | None
    """Half-width of its 95 % interval in the unit of the mean; 0: exact, such as an invoice; None:
    cannot be stated, and neither can that of anything computed of it."""

    @property
    def low(self) -> float:
        """Lower end of the interval; the mean where none is stated."""
        return self.mean - (self.u95 or 0.0)

    @property
    def high(self) -> float:
        """Upper end of the interval; the mean where none is stated."""
        return self.mean + (self.u95 or 0.0)

    @property
    def inverse(self) -> Estimate:
        """1 over it.

        Raises:
            ZeroDivisionError: it is 0.
        """
        return exact(1.0) / self

    def __add__(self, other: Estimate | float) -> Estimate:
        """The sum."""
        other = _estimate(other)
        return Estimate(self.mean + other.mean, _in_quadrature(self.u95, other.u95))

    def __sub__(self, other: Estimate | float) -> Estimate:
        """The difference."""
        other = _estimate(other)
        return Estimate(self.mean - other.mean, _in_quadrature(self.u95, other.u95))

    def __mul__(self, other: Estimate | float) -> Estimate:
        """The product."""
        other = _estimate(other)
        own, others = _scaled(self.u95, other.mean), _scaled(other.u95, self.mean)
        return Estimate(self.mean * other.mean, _in_quadrature(own, others))

    def __truediv__(self, other: Estimate | float) -> Estimate:
        """The quotient.

        Raises:
            ZeroDivisionError: the divisor is 0.
        """
        other = _estimate(other)
        mean = self.mean / other.mean
        own, others = self.u95, _scaled(other.u95, mean)
        return Estimate(mean, _scaled(_in_quadrature(own, others), 1 / other.mean))

    __radd__ = __add__
    __rmul__ = __mul__


def exact(value: float) -> Estimate:
    """A number without uncertainty: counted, agreed or invoiced."""
    return Estimate(value, 0.0)


def _estimate(value: Estimate | float) -> Estimate:
    return value if isinstance(value, Estimate) else exact(value)


def _scaled(u95: float | None, factor: float) -> float | None:
    return None if u95 is None else abs(u95 * factor)


def _in_quadrature(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else math.hypot(one, other)
