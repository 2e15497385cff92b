"""What a device counted of its own defects: read before and after a run, since load brings them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DeviceHealth:
    """Defects at one instant; None where the device does not report them, which is never 0."""

    ecc_corrected: int | None = None
    """Memory errors corrected since the driver was loaded
    (`ecc.errors.corrected.volatile.total`)."""
    ecc_uncorrected: int | None = None
    """Memory errors that could not be corrected since the driver was loaded
    (`ecc.errors.uncorrected.volatile.total`)."""
    remapped_rows_corrected: int | None = None
    """Memory rows replaced for corrected errors, ever (`remapped_rows.correctable`)."""
    remapped_rows_uncorrected: int | None = None
    """Memory rows replaced for uncorrectable errors, ever (`remapped_rows.uncorrectable`)."""
    remap_is_pending: bool | None = None
    """A row will be replaced at the next reset (`remapped_rows.pending`)."""
    remap_has_failed: bool | None = None
    """A row could not be replaced (`remapped_rows.failure`)."""
    retired_pages_corrected: int | None = None
    """Pages taken out of use for repeated corrected errors, ever
    (`retired_pages.single_bit_ecc.count`)."""
    retired_pages_uncorrected: int | None = None
    """Pages taken out of use for an uncorrectable error, ever
    (`retired_pages.double_bit.count`)."""
    retirement_is_pending: bool | None = None
    """A page will be taken out of use at the next reset (`retired_pages.pending`)."""
    xids: tuple[int, ...] | None = None
    """Xid codes of the driver (its log of serious errors) since the device was opened, in order;
    None where the driver does not announce them."""

    def worse_than(self, before: DeviceHealth) -> tuple[str, ...]:
        """What went wrong since an earlier look, a sentence each; () when nothing did."""
        found = []
        for field, (one, many) in _WORDS.items():
            now, then = getattr(self, field), getattr(before, field)
            if now is not None and then is not None and now > then:
                count = int(now) - int(then)
                found.append(one if count == 1 else many.format(count=count))
        new = (self.xids or ())[len(before.xids or ()) :]
        if new:
            found.append(f"the driver reported Xid {', '.join(map(str, new))}")
        return tuple(found)


_WORDS = {
    "ecc_corrected": ("1 memory error was corrected", "{count} memory errors were corrected"),
    "ecc_uncorrected": (
        "1 memory error could not be corrected",
        "{count} memory errors could not be corrected",
    ),
    "remapped_rows_corrected": (
        "1 memory row was replaced for corrected errors",
        "{count} memory rows were replaced for corrected errors",
    ),
    "remapped_rows_uncorrected": (
        "1 memory row was replaced for an uncorrectable error",
        "{count} memory rows were replaced for uncorrectable errors",
    ),
    "remap_is_pending": ("a memory row waits for a reset to be replaced", ""),
    "remap_has_failed": ("a memory row could not be replaced", ""),
    "retired_pages_corrected": (
        "1 memory page was taken out of use for corrected errors",
        "{count} memory pages were taken out of use for corrected errors",
    ),
    "retired_pages_uncorrected": (
        "1 memory page was taken out of use for an uncorrectable error",
        "{count} memory pages were taken out of use for uncorrectable errors",
    ),
    "retirement_is_pending": ("a memory page waits for a reset to be taken out of use", ""),
}
"""What to say when a field rose by one, and by more."""
