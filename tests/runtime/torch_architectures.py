"""Runs inside a real torch: three public architectures as plain torch.nn, scripted, traced or exported, and their results.

``python torch_architectures.py WORKER FOLDER WAY``: archives are written to the folder, results to standard output. WAY is ``torchscript``
for scripted and traced programs, or ``export`` for programs with a dynamic batch dimension. Python 3.6 and torch only.
"""

import importlib.util
import json
import os
import sys

import torch
from torch import nn

class BasicBlock(nn.Module):
    """Of ResNet-18 and ResNet-34 (He and others, 2015)."""

    def __init__(self, inputs, outputs, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += self.downsample(x)
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 4, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(4)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = nn.Sequential(BasicBlock(4, 4), BasicBlock(4, 4))
        self.layer2 = nn.Sequential(BasicBlock(4, 8, stride=2), BasicBlock(8, 8))
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(8, 5)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer2(self.layer1(x))
        return self.fc(torch.flatten(self.avgpool(x), 1))


class Classifier(nn.Module):
    """Transformer encoder over tokens (Vaswani and others, 2017)."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(11, 8)
        self.places = nn.Embedding(6, 8)
        layer = nn.TransformerEncoderLayer(8, 2, dim_feedforward=12, dropout=0.1, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(8))
        self.head = nn.Linear(8, 3)

    def forward(self, ids):
        at = torch.arange(ids.size(1))
        x = (self.tokens(ids) + self.places(at)).transpose(0, 1)
        return torch.log_softmax(self.head(self.encoder(x)[0]), dim=-1)


class Tagger(nn.Module):
    """A bidirectional LSTM over words, with a tag for each of them (Huang and others, 2015)."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(11, 5, padding_idx=0)
        self.lstm = nn.LSTM(5, 4, num_layers=2, batch_first=True, bidirectional=True, dropout=0.2)
        self.tags = nn.Linear(8, 3)

    def forward(self, ids):
        result, _ = self.lstm(self.words(ids))
        scores = torch.log_softmax(self.tags(result), dim=2)
        return scores, scores.argmax(dim=2)


def prepared(make):
    """With weights and statistics that are no initial ones, and the same of every release."""
    torch.manual_seed(5)
    module = make().eval()
    generator = torch.Generator()
    generator.manual_seed(7)
    with torch.no_grad():
        for name, tensor in sorted(module.state_dict().items()):
            if tensor.dtype == torch.float32:
                drawn = torch.rand(tensor.shape, generator=generator)
                tensor.copy_(drawn + 0.5 if "var" in name else (drawn - 0.5) * 0.6)
    return module


def images(count):
    return torch.linspace(-1, 1, count * 3 * 16 * 16).sin().reshape(count, 3, 16, 16)


def words(count):
    return torch.tensor([[1, 5, 3, 0, 2], [10, 0, 4, 4, 9], [7, 7, 0, 1, 6]]).repeat(2, 1)[:count]


MADE = {"resnet": (ResNet, images), "transformer": (Classifier, words), "tagger": (Tagger, words)}
BATCHES = (2, 1, 3, 5)  # the first is that of the example


def torchscript(module, example, path):
    """Scripted and traced: what to call, by the way in which it was made."""
    for way in ("script", "trace"):
        program = torch.jit.script(module) if way == "script" else torch.jit.trace(module, example)
        torch.jit.save(program, path % way)
        yield way, lambda way=way: torch.jit.load(path % way), [example]


def exported(module, example, path, inputs):
    """Exported with a batch of any size."""
    import torch.export

    batch = torch.export.Dim("batch", min=1, max=64)
    program = torch.export.export(module, (example,), dynamic_shapes=({0: batch},))
    torch.export.save(program, path)
    yield "export", lambda: torch.export.load(path), [inputs(count) for count in BATCHES]


def main(worker, folder, way):
    results = {}
    for name, (make, inputs) in MADE.items():
        module, example = prepared(make), inputs(BATCHES[0])
        path = os.path.join(folder, name)
        if way == "export":
            product = exported(module, example, path + "-export.pt2", inputs)
        else:
            product = torchscript(module, example, path + "-%s.pt")
        for kind, load, given in product:
            calls = [{"method": "forward", "args": [worker.Encoder(torch).encode(item)]} for item in given]
            result = worker.perform(torch, way, load, calls)
            results["%s-%s" % (name, kind)] = {"calls": calls, "result": result}
    print(json.dumps(results))


if __name__ == "__main__":
    spec = importlib.util.spec_from_file_location("worker", sys.argv[1])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    main(module, sys.argv[2], sys.argv[3])
