"""Reads an exported event file with TensorBoard."""

import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

events = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0, "histograms": 0, "images": 0})
events.Reload()
tags = events.Tags()
assert {"loss", "accuracy", "learning_rate", "temperature"} <= set(tags["scalars"]), tags
loss = [(s.step, s.value) for s in events.Scalars("loss")]
assert len(loss) == int(sys.argv[2]) and abs(loss[-1][1] - float(sys.argv[3])) < 1e-5, (loss, sys.argv)
assert "chain1/linear1.weight" in tags["histograms"], tags
h = events.Histograms("chain1/linear1.weight")[-1].histogram_value
assert h.num == int(sys.argv[4]) and sum(h.bucket) == h.num and h.min < 0 < h.max
assert tags["images"] == ["figures/dot"] and events.Images("figures/dot")[0].width == 3
print(f"{len(loss)} losses, {len(tags['histograms'])} histograms, {tags['images']}")
