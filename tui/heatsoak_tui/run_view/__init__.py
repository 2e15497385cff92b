"""What the screen knows of one run: batches go in, bounded memory stays."""

from heatsoak_tui.run_view.series import BUCKETS, RECENT, Series
from heatsoak_tui.run_view.view import BoostSeen, RunView

__all__ = ["BUCKETS", "RECENT", "BoostSeen", "RunView", "Series"]
