"""What a reader sees whose own colours replace those of the pages."""

from __future__ import annotations

from io import BytesIO

import matplotlib.image
import numpy as np
import pytest

BARS = {"opener": "opener-bar", "memory": "memory-bar", "sampler": "sampler-bar"}

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("stage", BARS)
def test_bars_are_as_long_as_what_they_tell(open_stage, stage, theme):
    _, frame = open_stage(stage, theme=theme, forced_colors="active", reduced_motion="reduce")
    if stage == "sampler":
        frame.get_by_role("button", name="One letter").click()
    bars = frame.locator(f".{BARS[stage]}:visible")
    bars.first.wait_for()
    shares = []
    for bar in bars.all():
        picture = matplotlib.image.imread(BytesIO(bar.screenshot()), format="png")[..., :3]
        shares.append((picture.mean(-1) < 0.5).mean())
    assert len(shares) > 1
    assert np.ptp(shares) > 0.1, shares
