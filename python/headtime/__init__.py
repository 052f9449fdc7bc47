"""headtime: a disk I/O scheduler that knows where the head is.

Simulates hard disks and their schedulers, one run at a time (`simulate`) or many (`sweep`)::

    import headtime as ht

    r = ht.simulate(disk="atlas10k", workload="oltp", background="scan", seconds=60)
    print(r.foreground.per_second, r.freeblock.mb_s)

The same settings and the same seed give the same figures as the command `headtime simulate`.
"""

from headtime._headtime import HeadtimeError, Table, __version__
from headtime.disk import Access, Completion, Drive, Model, Position, Profile, profiles
from headtime.experiments import Characterization, Validation, characterize, reproduce, validate
from headtime.fleets import FleetResult, fleet, studies, study
from headtime.result import (
    Class,
    Cost,
    Foreground,
    Freeblock,
    HeadTime,
    Prediction,
    ResponseMs,
    Result,
    Session,
    WriteCache,
)
from headtime.simulation import Waiting, simulate
from headtime.sweeping import Grid, Progress, SweepResult, sweep

__all__ = [
    "Access",
    "Characterization",
    "Class",
    "Completion",
    "Cost",
    "Drive",
    "Foreground",
    "FleetResult",
    "Freeblock",
    "Grid",
    "HeadTime",
    "HeadtimeError",
    "Model",
    "Position",
    "Prediction",
    "Profile",
    "Progress",
    "ResponseMs",
    "Result",
    "Session",
    "SweepResult",
    "Table",
    "Validation",
    "Waiting",
    "WriteCache",
    "__version__",
    "characterize",
    "fleet",
    "profiles",
    "reproduce",
    "simulate",
    "studies",
    "study",
    "sweep",
    "validate",
]
