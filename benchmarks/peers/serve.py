"""What the peers' programs share: they are this file and one of the frameworks', one after the other.

A program reads lines of JSON. One that has "work" says what to do from then on, one that has "steps" how often: the answer is the seconds it took.
One that has "displacement" is answered by the mean square of how far the parameters are from where they began.

The work is Pollen's: the images are bytes where the computing is done, and a step draws a minibatch of them, of its own for each chain, and normalises it;
parameters are float32 and so are their updates and the noise.
"""
import gc
import json
import os
import sys

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what a framework prints is no answer

PLANS = {  # filters of the 5x5 convolutions and their padding, hidden widths
    "lenet-small": ((10, 20), 0, (50,)),
    "lenet": ((20, 50), 0, (500,)),
    "mnist-64-64-256": ((64, 64), 2, (256,)),
}
CLASSES, SIDE = 10, 28
MEAN, DEVIATION = 0.1307, 0.3081  # of MNIST's pixels, of which 1 is the byte 255
TOGETHER = 16  # steps that are started at once where that is faster, as Pollen's CUDA graphs have them
ROUND = 0.4  # seconds of a round


def plan(name):
    """Of a network: the filters' shapes, their padding, and the shapes of the dense layers as (inputs, outputs)."""
    if name.startswith("mlp-"):
        filters, padding, hidden = (), 0, tuple(int(width) for width in name.split("-")[1:])
    else:
        filters, padding, hidden = PLANS[name]
    convolutions, channels, side = [], 1, SIDE
    for f in filters:
        convolutions.append((f, channels, 5, 5))
        channels, side = f, (side + 2 * padding - 4) // 2
    widths = [channels * side * side, *hidden, CLASSES]
    return convolutions, padding, list(zip(widths, widths[1:]))


def fastest(ways):
    """The quickest of several ways of the same work. A way is a function that prepares it and returns steps(n), which gives the seconds of n steps.

    One that fails is out of it, unless all do.
    """
    if len(ways) == 1:
        return ways[0]()
    best, least, failed = None, float("inf"), None
    for prepare in ways:
        try:
            steps = prepare()
            steps(2)
            n = max(1, min(4 * TOGETHER, int(ROUND / steps(1))))
            seconds = steps(n) / n
        except Exception as error:
            failed = error.with_traceback(None)  # whose frames have memory
            continue
        if seconds < least:
            best, least = steps, seconds
    if best is None:
        raise failed
    return best


def answer(**values):
    print(json.dumps(values), file=answers, flush=True)


def absent(why):
    """Ends the program of a framework that is not there."""
    answer(absent=str(why)[:300])
    sys.exit(0)


def serve(works, version):
    """Answers requests for works, which are classes by name: their objects have steps(n), which returns the seconds, and displacement()."""
    work = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request.get("work"):
                work = None  # its memory is for the next one
                gc.collect()
                work = works[request["work"]](request)
                answer(version=version, seconds=0)
            elif request.get("displacement"):
                answer(version=version, displacement=work.displacement())
            else:
                answer(version=version, seconds=work.steps(request["steps"]))
        except Exception as error:  # the other side prints it and goes on without this one
            answer(version=version, error=f"{type(error).__name__}: {error}".split("\n")[0][:300])


