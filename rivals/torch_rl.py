#!/usr/bin/env python3
"""A rival for rnnbench: TorchRL's GRUModule and LSTMModule, whose sequences may begin anew at any step.

Needs PyTorch and TorchRL (pip install torchrl). rnnbench starts it; rivals/torchrl.toml says how:

    rnnbench sweep --rival rivals/torchrl.toml --impl torchrl,persistent --device cuda:0 -H 512 -B 16 --resets 5

Knobs: backend=0 is triton, 1 pad (sequences are split at resets and packed for cuDNN), 2 scan, under torch.compile
as TorchRL's own choice of it. graph=1 replays the pass as a CUDA graph, which only triton can: the others read
resets on the host. ieee=1 has triton compute fp32 products without tensor cores, not as three of tf32. narrow=1
has triton keep all tensors in bf16, not the factors of recurrent products alone.

Data are batch-major, as TorchRL takes them, and resets are known from the start. A module is called with a TensorDict, which costs
0.2 ms or so on the host: a CUDA graph does not have it.
docs/rivals.md describes the protocol.
"""

import sys

sys.dont_write_bytecode = True  # no files beside this one
import protocol
from protocol import Unsupported

answers = protocol.answers()

try:
    import torch
    import torch_pass
    import torchrl
    from tensordict import TensorDict
    from torchrl.modules import GRUModule, LSTMModule
except ImportError as e:
    sys.exit(protocol.serve(answers, {"hello": protocol.absent("PyTorch, NumPy or TorchRL", e)}))

CELLS = {"gru": (GRUModule, "gru"), "lstm": (LSTMModule, "lstm")}
BACKENDS = ["triton", "pad", "scan"]


def hello():
    return {
        "name": "torchrl",
        "version": str(torchrl.__version__ or "of unknown version"),
        "devices": torch_pass.devices(cpu=False),
        "knobs": [
            {"name": "backend", "doc": "0: triton, 1: pad, 2: scan", "values": [0, 1, 2]},
            torch_pass.GRAPH,
            {"name": "ieee", "doc": "1: triton's fp32 products without tensor cores", "values": [0, 1]},
            {"name": "narrow", "doc": "1: triton keeps all tensors in bf16", "values": [0, 1]},
        ],
        "precisions": ["fp32", "tf32", "bf16", "fp16"],
        "resets": True,
        "unit_error": {"cuda": 2.0**-17},  # of cuDNN's, which pad runs: see pytorch.py
    }


class Rival(torch_pass.Pass):
    """A module, and the TensorDict that it is called with."""

    name = f"TorchRL {torchrl.__version__}"

    def set(self, p):
        super().set(p)
        if p["cell"] not in CELLS:
            raise Unsupported(f"TorchRL has gru and lstm, but no {p['cell']}")

    def load(self, file):
        self.file = {name: file[name] for name in file.files}

    def precisions(self, knobs, backend):
        """Returns the type of tensors, that of recurrent products, and how fp32 products are formed."""
        precision = self.point["precision"]
        if knobs.get("ieee") and (precision != "fp32" or backend != "triton"):
            raise Unsupported("ieee is for triton's fp32 products")
        if knobs.get("narrow") and (precision != "bf16" or backend != "triton"):
            raise Unsupported("narrow is for triton in bf16")
        if backend != "triton":
            return self.dtype, torch.float32, "auto"
        if precision == "fp16":
            raise Unsupported("TorchRL's triton computes in float32 and bfloat16")
        if precision == "bf16":
            return torch.bfloat16 if knobs.get("narrow") else torch.float32, torch.bfloat16, "tf32"
        return torch.float32, torch.float32, "tf32" if precision == "tf32" else "ieee" if knobs.get("ieee") else "tf32x3"

    def choose(self, knobs):
        """Makes the module and its inputs, and sets what a pass runs."""
        p, file = self.point, self.file
        backend = BACKENDS[knobs.get("backend", 0)]
        if knobs.get("graph") and backend != "triton":
            raise Unsupported(f"TorchRL's {backend} reads resets on the host, which no CUDA graph can")
        make, inner = CELLS[p["cell"]]
        kept, products, matmul = self.precisions(knobs, backend)
        states = [f"{s}_n" for s in self.states]
        self.module = make(
            p["input"], p["hidden"], p["layers"], in_keys=["input", *self.states], out_keys=["output", *states],
            recurrent_backend=backend, recurrent_compute_dtype=products, recurrent_matmul_precision=matmul, default_recurrent_mode=True,
        )
        self.inner = getattr(self.module, inner)
        with torch.no_grad():
            for name, w in self.inner.named_parameters():
                w.copy_(torch.from_numpy(file[name]).to(self.dtype))
        self.module.to(self.device, kept).requires_grad_(self.train)
        leaf = lambda t: t.to(self.device, self.dtype).to(kept).contiguous().requires_grad_(self.train)
        given = {"input": leaf(torch.from_numpy(file["input"]).transpose(0, 1))}
        for s in self.states:  # the states that a sequence begins with: those at its first step, 0 at a reset
            first = torch.zeros(p["batch"], p["steps"], p["layers"], p["hidden"])
            first[:, 0] = torch.from_numpy(file[f"{s}_0"]).transpose(0, 1)
            given[s] = leaf(first)
        begins = torch.zeros(p["batch"], p["steps"], 1, dtype=torch.bool)
        if "resets" in p:
            begins[:, :, 0] = torch.from_numpy(file["reset"]).T > 0
        begins[:, 0] = True
        self.given = given
        dict_ = TensorDict({**given, "is_init": begins.to(self.device)}, [p["batch"], p["steps"]])
        dy = torch.from_numpy(file["grad_output"]).transpose(0, 1).to(self.device, self.dtype).to(kept).contiguous() if self.train else None
        self.file = None
        call = torch.compile(self.module) if backend == "scan" and hasattr(torch, "compile") else self.module

        def run():
            out = call(dict_.copy())
            return out["output"], [out[s] for s in states]

        self.runs(run, [*self.inner.parameters(), *given.values()], dy)
        self.capture() if knobs.get("graph") else self.warm(3)

    def arrays(self):
        arrays = {"output": self.output.transpose(0, 1)}
        for s, last in zip(self.states, self.last):
            arrays[f"{s}_n"] = last[:, -1].transpose(0, 1)
            if self.train:
                arrays[f"grad_{s}_0"] = self.given[s].grad[:, 0].transpose(0, 1)
        if self.train:
            arrays["grad_input"] = self.given["input"].grad.transpose(0, 1)
            for name, w in self.inner.named_parameters():
                arrays[f"grad_{name}"] = w.grad
        return arrays


if __name__ == "__main__":
    protocol.serve(answers, Rival().verbs(hello()))
