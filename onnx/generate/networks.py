"""Writes whole networks, with the outputs and gradients of other programs, as directories that TestNetworks of package onnx reads.

    pip install onnx==1.23.2 onnxruntime==1.32.0 torch torchvision
    python3 onnx/generate/networks.py DIR
    POLLEN_ONNX_NETWORKS=DIR go test -v -run TestNetworks ./onnx

Each directory has model.onnx, input_0.pb and output_0.pb. Networks of torchvision, with random weights and random statistics of batch normalisation, also
have the gradients of the mean cross entropy, of the classes 0, 1, ..., with respect to all weights: gradient_0.pb and so on, named as the weights are.
The nine networks of package onnx get random weights; their outputs are ONNX Runtime's, without gradients.
"""

import glob
import os
import sys

import numpy as np
import onnx
from onnx import numpy_helper

SIDE, BATCH = 64, 2
DRAWS = 1000
TORCHVISION = ["resnet18", "resnet50", "mobilenet_v2", "mobilenet_v3_small", "shufflenet_v2_x1_0", "densenet121"]


def write(path, message):
    with open(path, "wb") as to:
        to.write(message.SerializeToString())


def store(at, x, y):
    write(os.path.join(at, "input_0.pb"), numpy_helper.from_array(x))
    write(os.path.join(at, "output_0.pb"), numpy_helper.from_array(y))


def far_from_kinks(network):
    """Returns images with their outputs and gradients. Images are drawn again until the inputs of all ReLUs are so far from the kinks, relative to their
    standard deviation, that rounding cannot decide on which side they are. It is an error if DRAWS of them are not enough."""
    import torch
    from torch.nn import functional as F

    nearest = []

    def note(module, inputs):
        x = inputs[0].detach()
        away = x.abs() if isinstance(module, torch.nn.ReLU) else torch.minimum(x.abs(), (x - 6).abs())
        nearest.append(float(away.min() / x.std()))

    for module in network.modules():
        if isinstance(module, (torch.nn.ReLU, torch.nn.ReLU6)):
            module.register_forward_pre_hook(note)
    for _ in range(DRAWS):
        nearest.clear()
        x = torch.randn(BATCH, 3, SIDE, SIDE)
        y = network(x)
        if not nearest or min(nearest) > 1e-6:
            return x, y.detach(), torch.autograd.grad(F.cross_entropy(y, torch.arange(BATCH)), list(network.parameters()))
    raise RuntimeError(f"in {DRAWS} draws of images, an input of a ReLU was within 1e-6 standard deviations of a kink, {min(nearest):.1g} in the last")


def of_torchvision(out, name):
    import torch
    import torchvision

    torch.manual_seed(1)
    network = getattr(torchvision.models, name)(weights=None).eval()
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
            module.weight.data.uniform_(0.5, 1.5)
            module.bias.data.normal_(0, 0.1)
        elif getattr(module, "bias", None) is not None:  # the exporter would make one tensor of equal ones
            module.bias.data.normal_(0, 0.1)
    x, y, gradients = far_from_kinks(network)
    at = os.path.join(out, name)
    os.makedirs(at, exist_ok=True)
    torch.onnx.export(network, x, os.path.join(at, "model.onnx"), dynamo=False, opset_version=17, do_constant_folding=False,
                      training=torch.onnx.TrainingMode.PRESERVE, input_names=["input"], output_names=["output"])
    store(at, x.numpy(), y.numpy())
    for i, ((parameter, _), gradient) in enumerate(zip(network.named_parameters(), gradients)):
        write(os.path.join(at, f"gradient_{i}.pb"), numpy_helper.from_array(gradient.numpy(), parameter))


def with_random_weights(model):
    """Replaces the constant weights of a model by random ones, and its output by the logits."""
    graph, random = model.graph, np.random.default_rng(1)
    shapes = {w.name: numpy_helper.to_array(w) for w in graph.initializer}
    for node in [n for n in graph.node if n.op_type == "ConstantOfShape"]:
        shape = shapes[node.input[0]]
        if len(shape) > 1:
            values = random.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:]))
        else:  # among them variances, which must be positive
            values = random.uniform(0.5, 1.5, shape)
        graph.node.remove(node)
        graph.initializer.append(numpy_helper.from_array(values.astype(np.float32), node.output[0]))
    if graph.node[-1].op_type == "Softmax":
        graph.output[0].name = graph.node[-1].input[0]
        graph.output[0].type.tensor_type.ClearField("shape")
        graph.node.pop()
    return model


def of_onnx(out, path):
    import onnxruntime

    model = with_random_weights(onnx.load(path))
    known = {w.name for w in model.graph.initializer}
    (image,) = [v for v in model.graph.input if v.name not in known]
    shape = [d.dim_value or 1 for d in image.type.tensor_type.shape.dim]
    x = np.random.default_rng(1).standard_normal(shape, dtype=np.float32)
    at = os.path.join(out, os.path.splitext(os.path.basename(path))[0])
    os.makedirs(at, exist_ok=True)
    write(os.path.join(at, "model.onnx"), model)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    store(at, x, session.run(None, {image.name: x})[0])


for network in TORCHVISION:
    of_torchvision(sys.argv[1], network)
for light in sorted(glob.glob(os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data", "light", "*.onnx"))):
    of_onnx(sys.argv[1], light)
