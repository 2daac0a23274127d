"""The common part of the peers' programs. A program is this file followed by that of one framework.

It reads requests, one JSON object per line:
  - "work" prepares a piece of work;
  - "steps" runs the number of steps given, and the answer is the seconds they took;
  - "displacement" is answered by the parameters' mean square distance from their initial values,
    "memory" by the bytes that the work takes, where it measures them.

The work is the same as Pollen's: images are bytes in the memory of the device, and each step draws a
minibatch for each chain and normalises it; parameters, their updates and the noise are float32.
"""
import gc
import json
import os
import sys
import time
import traceback

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # a framework's output must not mix with the answers

PLANS = {  # filters of the 5x5 convolutions, their padding, hidden widths
    "lenet-small": ((10, 20), 0, (50,)),
    "lenet": ((20, 50), 0, (500,)),
    "mnist-64-64-256": ((64, 64), 2, (256,)),
}
CLASSES = 10
MEAN, DEVIATION = 0.1307, 0.3081  # of MNIST's pixels, scaled so that the byte 255 is 1
TOGETHER = 16  # steps per launch where that is faster, as in Pollen's CUDA graphs
ROUND = 0.4  # seconds per round


def images_of(name):
    """Returns the channels and the side of a network's images."""
    return (3, 32) if name == "cnn" or name.startswith("resnet20-") else (1, 28)


def plan(name):
    """Returns a network's layers, each a tuple of its kind and sizes. LAYERS in the frameworks' programs has the kinds' functions.

    The sizes are: convolution (filters, channels, size, stride, padding), linear (inputs, outputs), response_norm and standardise (channels), residual
    (the layers of the body, and those of the shortcut or None); pool, average, flatten, relu and silu have none.
    """
    if name == "cnn":
        return cnn()
    if name.startswith("resnet20-"):
        return residual_network("silu" if "silu" in name else "relu")
    if name.startswith("mlp-"):
        filters, padding, hidden = (), 0, tuple(int(width) for width in name.split("-")[1:])
    else:
        filters, padding, hidden = PLANS[name]
    channels, side = images_of(name)
    layers = []
    for f in filters:
        # ReLU and max-pooling commute; all frameworks use the cheaper order, pooling first.
        layers += [("convolution", f, channels, 5, 1, padding), ("pool",), ("relu",)]
        channels, side = f, (side + 2 * padding - 4) // 2
    widths = [channels * side * side, *hidden, CLASSES]
    layers.append(("flatten",))
    for inputs, outputs in zip(widths, widths[1:]):
        layers += [("linear", inputs, outputs), ("relu",)]
    return layers[:-1]


def has_convolutions(name):
    return any(kind == "convolution" for kind, *_ in plan(name))


def cnn():
    layers, channels = [("standardise", 3)], 3
    for f in (16, 32, 64, 64):
        layers += [("convolution", f, channels, 3, 1, 1), ("pool",), ("relu",)]
        channels = f
    return [*layers, ("convolution", 128, channels, 3, 1, 1), ("relu",), ("average",), ("linear", 128, CLASSES)]


def residual_network(activation):
    """Returns a residual network of depth 20: 16 filters in the first stage, filter response normalisation with its threshold, projections."""
    layers, channels = [("convolution", 16, 3, 3, 1, 1), ("response_norm", 16), (activation,)], 16
    for f in (16, 32, 64):
        for block in range(3):
            stride, shortcut = 1, None
            if f != channels:
                stride, shortcut = 2, [("convolution", f, channels, 1, 2, 0), ("response_norm", f)]
            body = [("convolution", f, channels, 3, stride, 1), ("response_norm", f), (activation,), ("convolution", f, f, 3, 1, 1), ("response_norm", f)]
            layers += [("residual", body, shortcut), (activation,)]
            channels = f
    return [*layers, ("average",), ("linear", channels, CLASSES)]


def parameters_of(layers):
    """Yields the parameters in the layers' order: shape, and standard deviation and mean of their normal initial values. Linear weights are
    (inputs, outputs)."""
    for kind, *sizes in layers:
        if kind == "convolution":
            filters, channels, size, _, _ = sizes
            yield from (((filters, channels, size, size), 0.05, 0), ((filters,), 0.05, 0))
        elif kind == "linear":
            yield from ((tuple(sizes), 0.05, 0), ((sizes[1],), 0.05, 0))
        elif kind == "standardise":
            yield from (((sizes[0],), 0, 1), ((sizes[0],), 0, 0))
        elif kind == "response_norm":
            yield from (((sizes[0],), 0, 1), ((sizes[0],), 0, 0), ((sizes[0],), 0, 0))
        elif kind == "residual":
            for part in sizes:
                yield from parameters_of(part or [])


def through(layers, functions, p, x):
    """Applies layers to x by a framework's functions, which take parameters from the iterator p."""
    for kind, *sizes in layers:
        if kind == "residual":
            body, shortcut = sizes
            y = through(body, functions, p, x)
            x = y + (through(shortcut, functions, p, x) if shortcut else x)
        else:
            x = functions[kind](x, p, *sizes)
    return x


def fastest(ways):
    """Returns the fastest of several ways to do the same work. A way is a function that prepares it and returns steps(n), which returns the seconds of n
    steps.

    Ways that fail are skipped, unless all do. The likely ones should be first: once much of the time for preparations has passed, the rest are not tried.
    """
    if len(ways) == 1:
        return ways[0]()
    best, least, failed = None, float("inf"), None
    for prepare in ways:
        if best is not None and time.monotonic() > enough:
            break
        try:
            steps = prepare()
            steps(2)
            n = max(1, min(4 * TOGETHER, int(ROUND / steps(1))))
            seconds = steps(n) / n
        except Exception as error:
            traceback.print_exc()
            failed = error.with_traceback(None)  # the frames would keep memory
            continue
        if seconds < least:
            best, least = steps, seconds
    if best is None:
        raise failed
    return best


enough = float("inf")  # the time after which no further way is tried


def answer(**values):
    print(json.dumps(values), file=answers, flush=True)


def absent(why):
    """Ends the program because its framework is missing."""
    answer(absent=str(why)[:300])
    sys.exit(0)


def serve(works, version):
    """Answers requests. works maps names to classes, whose objects have steps(n), which returns the seconds, and displacement()."""
    global enough
    work = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request.get("work"):
                work = None  # free its memory for the next one
                gc.collect()
                enough = time.monotonic() + 0.3 * request.get("patience", float("inf"))
                work = works[request["work"]](request)
                answer(version=version, seconds=0)
            elif request.get("displacement"):
                answer(version=version, displacement=work.displacement())
            elif request.get("memory"):
                answer(version=version, memory=work.memory())
            else:
                answer(version=version, seconds=work.steps(request["steps"]))
        except Exception as error:  # the caller prints it and continues without this side
            traceback.print_exc()
            answer(version=version, error=f"{type(error).__name__}: {error}".split("\n")[0][:300])


