"""Asks a server by the client that openapi-python-client generated, and prints the answers as JSON.

Arguments: the server's URL, its token, a .npy file of images, uint8 [N H W], and the directory of
the package pollen_client. Next to the .npy file are the images as files, 0.png and so on.
"""

import base64
import io
import json
import os
import sys

import numpy

url, token, path, packages = sys.argv[1:]
sys.path.insert(0, packages)

from pollen_client import AuthenticatedClient, Client, models, types  # noqa: E402
from pollen_client.api.default import describe_run, health, infer_by_model, infer_by_version, list_models  # noqa: E402
from pollen_client.api.default import metadata_of_model, metrics, open_api, page, predict, server_live, server_metadata  # noqa: E402
from pollen_client.api.default import readiness_of_version  # noqa: E402

images = numpy.load(path)
files = [open(os.path.join(os.path.dirname(path), f"{i}.png"), "rb").read() for i in range(len(images))]
client = AuthenticatedClient(url, token)

stranger = Client(url)
assert server_live.sync(client=stranger).live
refusal = list_models.sync_detailed(client=stranger)
assert refusal.status_code == 401 and "Authorization" in refusal.parsed.error, refusal

run = describe_run.sync(client=client)
assert run.name == "patterns" and run.height == images.shape[1] and run.self_test.images > 0, run
assert health.sync(client=client).status == "ready" and server_metadata.sync(client=client).name == "pollen"
assert [m.version for m in list_models.sync(client=client).models] == ["1"]
assert metadata_of_model.sync("patterns", client=client).inputs[0].shape == [-1, 1, *images.shape[1:]]
assert readiness_of_version.sync("patterns", "1", client=client).ready
assert metrics.sync_detailed(client=client).status_code == 200 and page.sync_detailed(client=client).status_code == 200
assert open_api.sync_detailed(client=client).status_code == 200
unknown = metadata_of_model.sync_detailed("nothing", client=client)
assert unknown.status_code == 404 and "nothing" in unknown.parsed.error, unknown

results = {}
encoded = [base64.b64encode(content).decode() for content in files]
answers = predict.sync(client=client, body=models.ImagesRequest(images=encoded, probabilities=True))
results["JSON"] = answers.to_dict()["answers"]
answers = predict.sync(client=client, body=types.File(payload=io.BytesIO(files[0])), probabilities=True)
results["one file"] = answers.to_dict()["answers"]
form = models.FormRequest(images=[types.File(payload=io.BytesIO(content), file_name=f"{i}.png") for i, content in enumerate(files)])
results["form"] = predict.sync(client=client, body=form, probabilities=True).to_dict()["answers"]
broken = predict.sync_detailed(client=client, body=types.File(payload=io.BytesIO(b"garbage")))
assert broken.status_code == 400 and "must begin like an image" in broken.parsed.error, broken

tensor = models.InferInput(name="image", datatype="UINT8", shape=list(images.shape), data=images.ravel().tolist())
request = models.InferRequest(inputs=[tensor], id="7", outputs=[models.RequestedOutput("class"), models.RequestedOutput("confidence")])
for infer in lambda: infer_by_model.sync("patterns", client=client, body=request), lambda: infer_by_version.sync("patterns", "1", client=client, body=request):
    response = infer()
    assert response.id == "7" and response.parameters.run_digest == run.digest
    results["tensor"] = {output.name: output.data for output in response.outputs}
print(json.dumps(results))
