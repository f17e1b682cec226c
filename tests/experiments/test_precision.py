"""Models are trained in bfloat16 where the device has instructions for it; the record says so."""

import torch

from experiments.harness.core import provenance
from experiments.harness.learning import precision

CPU = torch.device("cpu")


def test_a_cpu_without_instructions_for_bfloat16_uses_float32(monkeypatch):
    a = torch.ones(2, 2)
    for able in (True, False):
        for module in (precision, provenance):
            monkeypatch.setattr(module, "has_bfloat16", lambda able=able: able)
        for wanted in (True, False):
            with precision.autocast(CPU, wanted):
                assert ((a @ a).dtype == torch.bfloat16) == (able and wanted)
        assert provenance.describe_device(CPU)["name"].endswith(" BF16") == able
