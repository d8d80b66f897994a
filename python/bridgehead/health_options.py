"""How the loop is looked after: options, as a part of `Config`.

Not who looks: that is Rust's (`health.rs`); what is told of it is in `slow_steps.py` and `diagnostics.py`.
"""

from dataclasses import dataclass

from bridgehead.options import Shape, option, switch
from bridgehead.quantities import seconds
from bridgehead.uvicorn_options import UvicornOptions

_NEW = "new: uvicorn has no such option"
_GROUP = "Diagnostics"


@dataclass(slots=True, kw_only=True, init=False, repr=False, eq=False)  # `Config` has these
class HealthOptions(UvicornOptions):
    """When a loop is held for too long, and who says so."""

    slow_step: float = option(
        0.25,
        read=seconds,
        metavar="TIME",
        group=_GROUP,
        help="say where the application holds the loop for longer, and count it; 0: nobody looks",
        differs=_NEW,
    )
    loop_debug: bool = option(
        False,
        read=switch,
        shape=Shape.SWITCH,
        group=_GROUP,
        help="asyncio's debug mode: slow callbacks, coroutines that nobody awaited; slow, for development",
        differs=_NEW,
    )
