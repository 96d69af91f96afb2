"""Every kind of attack by name."""

from attack.damage import DAMAGE
from attack.expressions import EXPRESSIONS
from attack.inputs import INPUTS
from attack.kills import KILLS
from attack.kind import Kind
from attack.losses import LOSS_CALLS
from attack.settings import SETTINGS

__all__ = ["KINDS"]

KINDS: dict[str, Kind] = {kind.name: kind for kind in (KILLS, DAMAGE, SETTINGS, EXPRESSIONS, INPUTS, LOSS_CALLS)}
