"""Writes whole networks, with the outputs and gradients of other programs, as directories that TestNetworks of package onnx reads.

    pip install onnx==1.23.2 onnxruntime==1.32.0 torch torchvision
    pip install timm==1.0.31 onnxscript # optional
    python3 onnx/generate/networks.py DIR
    POLLEN_ONNX_NETWORKS=DIR go test -v -run TestNetworks ./onnx

Each directory has model.onnx, input_0.pb and output_0.pb. Networks of torchvision, with random weights and random statistics of batch normalisation, also
have the gradients of the mean cross entropy, of the classes 0, 1, ..., with respect to all weights: gradient_0.pb and so on, named as the weights are.
The nine networks of package onnx get random weights; their outputs are ONNX Runtime's, without gradients. If timm is installed, networks of its families
are exported for one image, and must give the same outputs for two.
"""

import glob
import importlib.util
import os
import shutil
import sys

import numpy as np
import onnx
from onnx import numpy_helper

SIDE, BATCH = 64, 2
DRAWS = 1000
TORCHVISION = ["resnet18", "resnet50", "mobilenet_v2", "mobilenet_v3_small", "shufflenet_v2_x1_0", "densenet121", "vit", "swin_t"]
TIMM = """vit_tiny_patch16_224 vit_small_patch14_dinov2 vit_small_patch14_reg4_dinov2 vit_base_patch16_clip_224 vit_base_patch16_siglip_224
deit3_small_patch16_224 beit_base_patch16_224 eva02_tiny_patch14_224 hiera_tiny_224 swin_tiny_patch4_window7_224 twins_pcpvt_small pvt_v2_b0 davit_tiny
focalnet_tiny_srf maxvit_pico_rw_256 xcit_nano_12_p16_224 cait_xxs24_224 coat_lite_tiny levit_128s efficientformer_l1 tiny_vit_5m_224 mobilevit_xxs
mobilevitv2_050 edgenext_xx_small efficientvit_b0 botnet26t_256 poolformer_s12 mixer_s32_224 resmlp_12_224 gmlp_s16_224 convnext_atto convnextv2_atto
inception_next_tiny mobilenetv3_small_100 mobilenetv4_conv_small efficientnet_b0 tf_efficientnetv2_b0 tinynet_e lcnet_050 ghostnetv2_100 rexnet_100
mobileone_s0 repvgg_a0 repvit_m0_9 fastvit_t8 starnet_s1 regnety_002 resnest14d seresnext26d_32x4d cspresnet50 dla34 hrnet_w18_small inception_v3 xception41
eca_nfnet_l0 mvitv2_tiny""".split()


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
    if name == "vit":
        network = torchvision.models.VisionTransformer(image_size=SIDE, patch_size=16, num_layers=2, num_heads=3, hidden_dim=48, mlp_dim=96).eval()
    else:
        network = getattr(torchvision.models, name)(weights=None).eval()
    for parameter in network.parameters():
        if not parameter.any():  # such as the class token
            parameter.data.normal_(0, 0.1)
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
            module.weight.data.uniform_(0.5, 1.5)
            module.bias.data.normal_(0, 0.1)
        elif isinstance(getattr(module, "bias", None), torch.Tensor):  # the exporter would make one tensor of equal ones
            module.bias.data.normal_(0, 0.1)
            if isinstance(module, torch.nn.LayerNorm):
                module.weight.data.uniform_(0.5, 1.5)
    x, y, gradients = far_from_kinks(network)
    at = os.path.join(out, name)
    os.makedirs(at, exist_ok=True)
    torch.onnx.export(network, x, os.path.join(at, "model.onnx"), dynamo=False, opset_version=17, do_constant_folding=False,
                      training=torch.onnx.TrainingMode.PRESERVE, input_names=["input"], output_names=["output"])
    store(at, x.numpy(), y.numpy())
    for i, ((parameter, _), gradient) in enumerate(zip(network.named_parameters(), gradients)):
        write(os.path.join(at, f"gradient_{i}.pb"), numpy_helper.from_array(gradient.numpy(), parameter))


def of_timm(out, name, dynamo):
    import timm
    import torch

    at = os.path.join(out, name + ("-dynamo" if dynamo else ""))
    os.makedirs(at, exist_ok=True)
    torch.manual_seed(0)
    network = timm.create_model(name, pretrained=False, **({"img_size": 224} if "dinov2" in name else {})).eval()
    side = 256 if "256" in name else 224
    for module in network.modules():
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
    for parameter in network.parameters():
        if parameter.ndim == 1:
            parameter.data += torch.randn_like(parameter) * 0.05
        elif not parameter.any():  # such as the weights of some heads
            parameter.data.normal_(0, 0.02)
    x = torch.randn(BATCH, 3, side, side)
    with torch.no_grad():
        y = network(x)
    try:
        torch.onnx.export(network, (torch.zeros(1, 3, side, side),), os.path.join(at, "model.onnx"), dynamo=dynamo)
    except Exception as e:  # PyTorch cannot export every network
        print(f"{name}: not exported (dynamo={dynamo}): {str(e).splitlines()[0]}")
        shutil.rmtree(at)
        return
    store(at, x.numpy(), y.numpy())


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
if importlib.util.find_spec("timm"):
    for network in TIMM:
        for dynamo in (False, True):
            of_timm(sys.argv[1], network, dynamo)
else:
    print("timm is not installed: its networks are left out")
