"""Write typical user checkpoints, each kind with its own library. Runs inside a release: ``write.py FOLDER KIND...``."""

from __future__ import annotations

import argparse
import collections
import datetime
import decimal
import os
import pathlib
import sys
import uuid
import warnings

warnings.simplefilter("ignore")
os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", CUDA_VISIBLE_DEVICES="")

import numpy as np  # noqa: E402 - after the variables that libraries read on import
import torch  # noqa: E402
from torch import nn  # noqa: E402

OUT = pathlib.Path(sys.argv[1])


def place(*names: str) -> str:
    """The path of a file or a folder; creates its parents."""
    path = OUT.joinpath(*names)
    path.parent.mkdir(parents=True, exist_ok=True)
    return str(path)


def lightning() -> None:
    """Checkpoints of a Trainer: plain hyperparameters, a namespace, OmegaConf."""
    import pytorch_lightning as pl
    from omegaconf import OmegaConf
    from torch.utils.data import DataLoader, TensorDataset

    class Module(pl.LightningModule):
        def __init__(self, lr=0.1, names=("a", "b"), config=None):
            super().__init__()
            self.save_hyperparameters()
            self.layer = nn.Linear(4, 2)

        def training_step(self, batch, _):
            return self.layer(batch[0]).sum()

        def configure_optimizers(self):
            optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
            return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1)]

    configs = {"plain": None, "namespace": argparse.Namespace(a=1), "omegaconf": OmegaConf.create({"a": {"b": [1, 2]}})}
    for name, config in configs.items():
        checkpoint = pl.callbacks.ModelCheckpoint(dirpath=place("lightning", name, "at"), filename="best", monitor=None)
        quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
        trainer = pl.Trainer(max_epochs=1, accelerator="cpu", default_root_dir=str(OUT), callbacks=[checkpoint], **quiet)
        trainer.fit(Module(config=config), DataLoader(TensorDataset(torch.ones(4, 4)), batch_size=2))
        trainer.save_checkpoint(place("lightning", name + ".ckpt"))


def transformers() -> None:
    """A complete and a sharded model, a whole module, and the folder of a Trainer."""
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 30}
    model = BertForSequenceClassification(BertConfig(**sizes, max_position_embeddings=16))
    model.save_pretrained(place("transformers", "pretrained", ""), safe_serialization=False)
    model.save_pretrained(place("transformers", "sharded", ""), safe_serialization=False, max_shard_size="4KB")
    torch.save(model, place("transformers", "whole.pt"))

    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, _):
            ones = torch.ones(8, dtype=torch.long)
            return {"input_ids": ones, "attention_mask": ones, "labels": torch.tensor(1)}

    steps = {"max_steps": 2, "save_steps": 2, "per_device_train_batch_size": 2, "report_to": []}
    for more in ({"use_cpu": True, "save_safetensors": False}, {"use_cpu": True}, {"no_cuda": True}):  # newest versions first
        try:
            arguments = TrainingArguments(output_dir=place("transformers", "trainer", ""), **steps, **more)
            break
        except TypeError:
            continue
    Trainer(model, arguments, train_dataset=Data()).train()


def accelerate() -> None:
    """The state saved by Accelerator."""
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    model = nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters())
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 5)
    model, optimizer, scheduler = accelerator.prepare(model, optimizer, scheduler)
    accelerator.backward(model(torch.ones(2, 3)).sum())
    optimizer.step()
    scheduler.step()
    try:
        accelerator.save_state(place("accelerate", ""), safe_serialization=False)
    except TypeError:  # before 0.20
        accelerator.save_state(place("accelerate", ""))


def torchvision() -> None:
    """Models as states, as whole modules, with transforms, and scripted with operators of torchvision."""
    import torchvision as tv

    model = tv.models.resnet18()
    torch.save(model.state_dict(), place("torchvision", "state.pth"))
    torch.save(model, place("torchvision", "whole.pth"))
    transform = tv.transforms.Compose([tv.transforms.Resize(8), tv.transforms.Normalize((0.5,), (0.5,))])
    torch.save({"model": tv.models.squeezenet1_1().state_dict(), "transform": transform}, place("torchvision", "transforms.pth"))
    torch.jit.script(tv.models.mobilenet_v2().eval()).save(place("torchvision", "mobilenet_script.pt"))
    detector = tv.models.detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None).eval()
    torch.jit.script(detector).save(place("torchvision", "ssdlite_script.pt"))


def own() -> None:
    """A whole user-defined module, and typical additional data."""
    import own_model

    model = own_model.Net()
    torch.save(model, place("own", "whole.pt"))
    torch.save(model.eval(), place("own", "legacy.pt"), _use_new_zipfile_serialization=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model(torch.ones(1, 3, 4, 4)).sum().backward()
    optimizer.step()
    torch.save({"state": model.state_dict(), "optimizer": optimizer.state_dict()}, place("own", "ordinary.pt"))
    random = {"rng": torch.get_rng_state(), "np_rng": np.random.get_state()}
    plain = {"args": argparse.Namespace(x=1), "device": torch.device("cpu"), "dtype": torch.float32, "size": torch.Size([1, 2])}
    torch.save({"model": model, "optimizer": optimizer, **random, **plain}, place("own", "everything.pt"))


def distributed() -> None:
    """A distributed checkpoint, without a process group."""
    import torch.distributed.checkpoint as dcp

    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    dcp.save({"model": model.state_dict(), "step": 3}, checkpoint_id=place("distributed", "dcp"))


def fsdp() -> None:
    """States of FSDP and a DTensor; they are written by a process group of size one and loaded without one."""
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FullyShardedDataParallel, StateDictType
    from torch.distributed.tensor import Shard, distribute_tensor

    dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    try:
        model = FullyShardedDataParallel(nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)), device_id=torch.device("cpu"))
        for kind in (StateDictType.FULL_STATE_DICT, StateDictType.SHARDED_STATE_DICT, StateDictType.LOCAL_STATE_DICT):
            with FullyShardedDataParallel.state_dict_type(model, kind):
                torch.save(model.state_dict(), place("fsdp", kind.name.lower() + ".pt"))
        mesh = init_device_mesh("cpu", (1,))
        torch.save({"w": distribute_tensor(torch.ones(4, 4), mesh, [Shard(0)])}, place("fsdp", "dtensor.pt"))
    finally:
        dist.destroy_process_group()


def omegaconf() -> None:
    """A configuration next to a state."""
    from omegaconf import OmegaConf

    config = OmegaConf.create({"model": {"width": 3, "layers": [1, 2, 3]}, "lr": 0.1, "none": None})
    torch.save({"config": config, "state_dict": nn.Linear(2, 2).state_dict()}, place("omegaconf", "config.pt"))


def numpy() -> None:
    """Scalars, arrays and generators of the release's numpy."""
    arrays = {"array": np.arange(6.0), "flags": np.array([True]), "names": np.array(["a"]), "rows": np.zeros(2, [("a", "i4")])}
    torch.save({"mean": np.float64(0.5), "count": np.int64(3), **arrays}, place("numpy", "values.pt"))
    torch.save({"best": np.float32(1.5), "state_dict": nn.Linear(1, 1).state_dict()}, place("numpy", "scalar.pt"))
    torch.save({"rng": np.random.default_rng(0), "seq": np.random.SeedSequence(1)}, place("numpy", "generator.pt"))


def plain() -> None:
    """Data of Python and torch without another library."""
    containers = {"c": collections.Counter("aab"), "dd": collections.defaultdict(list, a=[1]), "dq": collections.deque([1])}
    values = {
        "when": datetime.datetime(2020, 1, 1),
        "path": pathlib.Path("/x"),
        "dec": decimal.Decimal("1.5"),
        "u": uuid.UUID(int=1),
    }
    torch.save(
        {**containers, **values, "s": {1, 2}, "r": range(3), "args": argparse.Namespace(lr=0.1)}, place("plain", "python.pt")
    )
    torch.save(argparse.Namespace(lr=0.1, betas=(0.9, 0.99)), place("plain", "namespace.pt"))
    torch.save(nn.Parameter(torch.ones(2)), place("plain", "parameter.pt"))
    torch.save(torch.ones(2).to_sparse(), place("plain", "sparse.pt"))
    torch.save(torch.nn.utils.rnn.pack_padded_sequence(torch.ones(2, 1, 1), [2]), place("plain", "packed.pt"))
    torch.save(torch.distributions.Normal(torch.zeros(1), torch.ones(1)), place("plain", "distribution.pt"))


def modules() -> None:
    """Modules modified by torch: quantized, traced, with hooks, in parallel."""
    model = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    quantized = torch.ao.quantization.quantize_dynamic(model, {nn.Linear})
    torch.save(quantized, place("modules", "quantized.pt"))
    torch.save(quantized.state_dict(), place("modules", "quantized_state.pt"))
    torch.save(torch.fx.symbolic_trace(model), place("modules", "fx.pt"))
    torch.save(nn.utils.weight_norm(nn.Linear(2, 2)), place("modules", "weight_norm.pt"))
    torch.save(nn.DataParallel(nn.Linear(2, 2)), place("modules", "data_parallel.pt"))


KINDS = (lightning, transformers, accelerate, torchvision, own, distributed, fsdp, omegaconf, numpy, plain, modules)

if __name__ == "__main__":
    for kind in KINDS:
        if kind.__name__ in sys.argv[2:]:
            kind()
            print(kind.__name__, flush=True)
