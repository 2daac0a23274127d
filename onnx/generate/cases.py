"""Writes tests of ONNX's own suite as directories that TestBackend of package onnx reads.

    pip install onnx==1.23.2
    python3 onnx/generate/cases.py DIR
    POLLEN_ONNX_CASES=DIR go test -v -run TestBackend ./onnx

Each directory has model.onnx, input_0.pb ..., output_0.pb ... The cases of single operators are made
by the package onnx; those exported from PyTorch, and nine image networks with constant weights, are
among its files. If the standard defines an operator by others, a second case calls a function of the
model that has this definition.
"""

import os
import shutil
import sys

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

data = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data")


def write(path, message):
    with open(path, "wb") as to:
        to.write(message.SerializeToString())


def definition(model):
    """Returns a copy of a model of one node, with a call of a function in the node's place that has the operator's definition by others. None without one."""
    if len(model.graph.node) != 1 or model.graph.node[0].domain not in ("", "ai.onnx"):
        return None
    node = model.graph.node[0]
    opset = [v.version for v in model.opset_import if v.domain in ("", "ai.onnx")][0]
    schema = onnx.defs.get_schema(node.op_type, opset)
    if schema.has_function:
        body = schema.function_body
    elif schema.has_context_dependent_function:
        types = {v.name: v.type for v in model.graph.input}
        given = [types[name].SerializeToString() if name else b"" for name in node.input]
        body = onnx.FunctionProto()
        body.ParseFromString(schema.get_context_dependent_function(node.SerializeToString(), given))
    else:
        return None
    if not body.opset_import:
        body.opset_import.add(domain="", version=schema.since_version)
    for name, attribute in schema.attributes.items():
        if attribute.default_value.type:
            body.attribute_proto.add().CopyFrom(attribute.default_value)
            body.attribute_proto[-1].name = name
    body.domain = "definitions"
    called = onnx.ModelProto()
    called.CopyFrom(model)
    called.graph.node[0].domain = body.domain
    called.graph.node[0].op_type = body.name
    called.functions.append(body)
    called.opset_import.add(domain=body.domain, version=1)
    return called


def operators(out):
    count = 0
    for case in collect_testcases(None):
        if case.model is None or not case.data_sets:
            continue
        count += store(out, case.name, case.model, case.data_sets[0])
        called = definition(case.model)
        if called is not None:
            count += store(out, case.name + "_function", called, case.data_sets[0])
    return count


def store(out, name, model, data):
    at = os.path.join(out, name)
    os.makedirs(at, exist_ok=True)
    write(os.path.join(at, "model.onnx"), model)
    inputs, outputs = data
    for kind, values in (("input", inputs), ("output", outputs)):
        for i, value in enumerate(values):
            try:
                tensor = numpy_helper.from_array(np.asarray(value))
            except (TypeError, ValueError, NotImplementedError, KeyError, AttributeError):
                continue  # a sequence or an optional value: TestBackend leaves the case out
            write(os.path.join(at, f"{kind}_{i}.pb"), tensor)
    return 1


def exported(out):
    count = 0
    for kind in ("pytorch-converted", "pytorch-operator"):
        for name in sorted(os.listdir(os.path.join(data, kind))):
            at = os.path.join(out, f"{kind}_{name}")
            os.makedirs(at, exist_ok=True)
            source = os.path.join(data, kind, name)
            shutil.copy(os.path.join(source, "model.onnx"), at)
            for file in os.listdir(os.path.join(source, "test_data_set_0")):
                shutil.copy(os.path.join(source, "test_data_set_0", file), at)
            count += 1
    return count


def networks(out):
    count = 0
    for name in sorted(os.listdir(os.path.join(data, "light"))):
        if not name.endswith(".onnx"):
            continue
        path = os.path.join(data, "light", name)
        model = onnx.load(path)
        weights = {tensor.name for tensor in model.graph.initializer}
        fed = [value for value in model.graph.input if value.name not in weights][0]
        shape = [extent.dim_value for extent in fed.type.tensor_type.shape.dim]
        at = os.path.join(out, name[: -len(".onnx")])
        os.makedirs(at, exist_ok=True)
        shutil.copy(path, os.path.join(at, "model.onnx"))
        shutil.copy(path[: -len(".onnx")] + "_output_0.pb", os.path.join(at, "output_0.pb"))
        # The input for which the package has the outputs: evenly spaced numbers in [0, 1).
        pixels = np.arange(np.prod(shape)).reshape(shape) / np.prod(shape)
        write(os.path.join(at, "input_0.pb"), numpy_helper.from_array(pixels.astype(np.float32)))
        count += 1
    return count


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(operators(sys.argv[1]), "cases of operators,", exported(sys.argv[1]), "exported from PyTorch,", networks(sys.argv[1]), "networks")
