"""Asks a server by Triton's client, and prints the outputs of each request as JSON, by name.

Arguments: the server's address, and a .npy file of images, uint8 [N H W]. Next to it are the images
as files, 0.png and so on.
"""

import json
import os
import sys

import numpy
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException

address, path = sys.argv[1:]
images = numpy.load(path)
count, height, width = images.shape
files = numpy.array([open(os.path.join(os.path.dirname(path), f"{i}.png"), "rb").read() for i in range(count)], dtype=object)
client = triton.InferenceServerClient(address)
assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("patterns") and client.is_model_ready("patterns", "1")
assert not client.is_model_ready("nothing")
server = client.get_server_metadata()
assert server["name"] == "pollen" and "binary_tensor_data" in server["extensions"], server
metadata = client.get_model_metadata("patterns")
assert metadata["inputs"] == [{"name": "image", "datatype": "UINT8", "shape": [-1, 1, height, width]}], metadata
assert metadata["versions"] == ["1"], metadata
names = [output["name"] for output in metadata["outputs"]]

results = {}


def plain(value):
    return value.decode() if isinstance(value, bytes) else value


def ask(name, array, datatype, as_bytes=True, outputs=None, **options):
    tensor = triton.InferInput("image", list(array.shape), datatype)
    tensor.set_data_from_numpy(array, binary_data=as_bytes)
    result = client.infer("patterns", [tensor], outputs=outputs, **options)
    wanted = names if outputs is None else [output.name() for output in outputs]
    results[name] = {output: [plain(value) for value in result.as_numpy(output).ravel().tolist()] for output in wanted}
    return result


ask("bytes", images, "UINT8")
ask("bytes in JSON", images, "UINT8", as_bytes=False, outputs=[triton.InferRequestedOutput(name, binary_data=False) for name in names])
ask("[N C H W]", images[:, None], "UINT8", model_version="1", request_id="7")
ask("[N H W C]", images[..., None], "UINT8", priority=1, timeout=10_000_000, parameters={"content_type": "np"})
ask("floats", (images / 255).astype(numpy.float32), "FP32")
ask("files", files, "BYTES")
ask("compressed", images, "UINT8", request_compression_algorithm="gzip", response_compression_algorithm="gzip")
result = ask("selected", images, "UINT8", outputs=[triton.InferRequestedOutput("class"), triton.InferRequestedOutput("probabilities", binary_data=False)])
assert result.as_numpy("probabilities").shape == (count, 3) and result.as_numpy("entropy") is None
pending = [client.async_infer("patterns", [tensor]) for tensor in [triton.InferInput("image", [1, height, width], "UINT8")] * 3
           if tensor.set_data_from_numpy(images[:1])]
assert all(one.get_result().as_numpy("index").shape == (1,) for one in pending) and len(pending) == 3

for words, attempt in {
    'there is no model "nothing"': lambda: client.get_model_metadata("nothing"),
    "the shape must be": lambda: ask("", images[:, 1:], "UINT8"),
    "FP32 must be from 0 to 1": lambda: ask("", images.astype(numpy.float32), "FP32"),
    "classification (class_count": lambda: ask("", images, "UINT8", outputs=[triton.InferRequestedOutput("probabilities", class_count=2)]),
    'there is no output "logits"': lambda: ask("", images, "UINT8", outputs=[triton.InferRequestedOutput("logits")]),
}.items():
    try:
        attempt()
    except InferenceServerException as e:
        assert words in e.message(), e
    else:
        raise AssertionError(f"no error with {words}")
print(json.dumps(results))
