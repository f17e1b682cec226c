"""Data of the stage `roofline`: data sheets, measured speeds, and measured points."""

from __future__ import annotations

from typing import Any

from lsa.cost import PEAKS

from ...explorable.markup import json_script
from ..index.mode_speed import ITEM_BYTES, limits
from ..lib.records import Record, device_name, load, rows

PARTS_OF_NAMES = {  # the driver's names for devices of data sheets
    "A100 80GB SXM": "A100-SXM4-80GB",
    "H100 SXM": "H100 80GB HBM3",
    "H200": "H200",
    "RTX 4090": "RTX 4090",
}


def data() -> str:
    """JSON in a script element for the stage.

    A list of devices: name, peaks in FLOP/s and B/s, seconds a step, bytes of a number, and
    measured points of forward passes: mode, length, seconds, heads, at width d. The modes in
    `waits` are charged for their steps on a GPU; on a CPU a step's wait is shorter than its
    arithmetic.
    """
    devices = {
        name: {
            "name": f"NVIDIA {name}", "flops": peak.flops, "bytes": peak.bytes,
            "step": peak.step, "item": 2, "waits": ["recurrent", "chunked"],
            "vendor": True, "points": [],
        }
        for name, peak in PEAKS.items()
    }  # fmt: skip
    for run in load("mode_speed"):
        name = device_name(run)
        label = next((key for key, part in PARTS_OF_NAMES.items() if part in name), name)
        device = devices.setdefault(label, _measured_device(run))
        device["width"] = run["config"]["width"]
        heads = run["config"]["batch"] * run["config"]["heads"]
        device["points"] += [
            [point["mode"], point["length"], point["seconds"], heads]
            for point in rows(run, **{"pass": "forward"})
        ]
    return json_script(list(devices.values()), id="devices-data")


def _measured_device(run: Record) -> dict[str, Any]:
    """A device without a data sheet; its speeds are None until they are measured."""
    speeds = limits(run) or dict.fromkeys(("matmul", "copy"))
    return {
        "name": f"{device_name(run)} (measured here)", "flops": speeds["matmul"],
        "bytes": speeds["copy"], "step": 0.0,
        "item": ITEM_BYTES[run["config"]["dtype"]], "waits": [],
        "vendor": False, "points": [],
    }  # fmt: skip
