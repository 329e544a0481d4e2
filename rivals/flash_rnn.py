#!/usr/bin/env python3
"""A rival for rnnbench: FlashRNN's lstm, gru, elman and slstm on a GPU.

Needs PyTorch with CUDA, nvcc and FlashRNN (pip install flashrnn). rnnbench starts it; rivals/flashrnn.toml says how:

    rnnbench sweep --rival rivals/flashrnn.toml --impl flashrnn,persistent --device cuda:0 --precision bf16

Knobs: backend=0 is cuda_fused, 1 cuda (products and operations in turns), 2 triton_fused. graph=1 replays
the pass as a CUDA graph. given=1 forms the input product before the time: recurrence alone, which is no fair
time of a layer, so experiments leave it out.

FlashRNN computes the recurrence. The input product is added here, by cuBLAS, and is part of the time. Weights
and inputs are kept in the layout that a backend works on, so that it permutes nothing of them: rows of the
weights are in its order of heads, units and gates, and the input is time-major or batch-major as it is.

FlashRNN 1.0.5 reads all properties of a GPU, of which CUDA 13 has removed some. It gets the four that it
uses from here. It sleeps up to 10 s before each build, so that several processes do not meet: here it does not.
cuda_fused is built for a shape, after a search for its tiles that takes a minute. Both are kept on disk by the package.

Its slstm holds n at 1 or more, as it is after a first step from 0. Where a state n begins below, here it begins
at 1, with c and m to match: that is the same layer. Its last states are then scaled back.
It has no gradient of a first m, which here follows from those of c and n.
docs/rivals.md describes the protocol.
"""

import importlib.metadata
import sys
import types

sys.dont_write_bytecode = True  # no files beside this one
import protocol
from protocol import Unsupported

answers = protocol.answers()

try:
    import torch
    import torch_pass
    from flashrnn import FlashRNNConfig, flashrnn
except ImportError as e:
    sys.exit(protocol.serve(answers, {"hello": protocol.absent("PyTorch, NumPy or FlashRNN", e)}))

CELLS = {"lstm": "lstm", "gru": "gru", "rnn-tanh": "elman", "slstm": "slstm"}
BACKENDS = ["cuda_fused", "cuda", "triton_fused"]
TYPES = {torch.float32: "float32", torch.float16: "float16", torch.bfloat16: "bfloat16"}
INPUT, RECURRENT, BIAS, OUTPUT = "TBGHD", "GHDP", "GHD", "SBTHD"  # shapes that are passed; H: heads, D: units of one


def version():
    try:
        return importlib.metadata.version("flashrnn")
    except importlib.metadata.PackageNotFoundError:
        return "of unknown version"


def hello():
    return {
        "name": "flashrnn",
        "version": version(),
        "devices": torch_pass.devices(cpu=False),
        "knobs": [
            {"name": "backend", "doc": "0: cuda_fused, 1: cuda, 2: triton_fused", "values": [0, 1, 2]},
            torch_pass.GRAPH,
            {"name": "given", "doc": "1: leave the input product out of the time", "values": [0, 1]},
        ],
        "precisions": ["fp32", "tf32", "bf16", "fp16"],
        "heads": True,
    }


def prepare_package(device):
    """Gives FlashRNN what it needs on CUDA 13, and lets it build at once."""
    package = sys.modules[FlashRNNConfig.__module__]
    gpu = torch.cuda.get_device_properties(device)
    numbers = {
        "maxThreadsPerBlock": 1024,  # of every GPU that has CUDA
        "regsPerMultiprocessor": gpu.regs_per_multiprocessor,
        "multiProcessorCount": gpu.multi_processor_count,
        "sharedMemPerBlockOptin": gpu.shared_memory_per_block_optin,
    }
    package.get_gpu_info = lambda device_id: numbers
    sys.modules[package.load.__module__].time = types.SimpleNamespace(sleep=lambda seconds: None)


def order(shape, of):
    """The permutation that brings dimensions in the order of one shape into that of another."""
    return [shape.index(d) for d in of]


class Layer:
    """A layer's parameters and first states, in the layout that a backend works on."""

    def __init__(self, host, config, file, number):
        p, self.config, self.number = host.point, config, number
        self.heads, self.gru = config.num_heads, p["cell"] == "gru"
        units, gates = p["hidden"] // self.heads, len(p["gates"])
        name = lambda s: f"{s}_l{number}"
        w, r, bx, br = (torch.from_numpy(file[name(s)]) for s in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
        self.inner = config._internal_input_shape[2:]  # of the columns of the input product
        w = w.view(gates, self.heads, units, -1).permute(*order("GHD", self.inner), 3)
        r = r.view(gates, self.heads, units, units)
        bx, br = (b.view(gates, self.heads, units) for b in (bx, br))
        if self.gru:  # gates with a recurrent product: that of n, then r and z. A bias for each part of n.
            r = r[[2, 0, 1]]
            b = torch.stack([br[2], bx[0] + br[0], bx[1] + br[1], bx[2]])
        else:
            b = bx + br
        self.shape = w.shape[:3]
        self.w = host.leaf(w.reshape(gates * p["hidden"], -1).numpy())
        self.r = host.leaf(r.permute(order(RECURRENT, config._internal_recurrent_shape)).numpy())
        self.b = host.leaf(b.permute(order(BIAS, config._internal_bias_shape)).numpy())
        first = torch.stack([torch.from_numpy(file[f"{s}_0"][number]).view(-1, self.heads, units) for s in p["states"]])
        if p["cell"] == "slstm":
            self.scale = (1 / first[2]).clamp(min=1)
            self.first_m = first[3].clone()
            first[1] *= self.scale
            first[2] *= self.scale
            first[3] -= self.scale.log()
        self.first = host.leaf(first.numpy())

    def leaves(self):
        return [self.w, self.r, self.b, self.first]

    def product(self, x):
        """The input product, as FlashRNN takes it: in its memory's order already."""
        own = self.config._internal_input_shape
        return torch.nn.functional.linear(x, self.w).unflatten(-1, self.shape).permute(order(own, INPUT))

    def run(self, product):
        """Returns all states after all steps, as states × steps × batch × heads × units."""
        states, _ = flashrnn(
            product,
            self.r.permute(order(self.config._internal_recurrent_shape, RECURRENT)),
            self.b.permute(order(self.config._internal_bias_shape, BIAS)),
            states=self.first.unsqueeze(2),
            config=self.config,
        )
        return states.transpose(1, 2)

    def gradients(self):
        """Yields names and gradients of the parameters."""
        w, r, b = self.w.grad, self.r.grad, self.b.grad
        yield "weight_ih", w.unflatten(0, self.shape).permute(*order(self.inner, "GHD"), 3).flatten(0, 2)
        r = r.permute(order(self.config._internal_recurrent_shape, RECURRENT))
        b = b.permute(order(self.config._internal_bias_shape, BIAS))
        bx = br = b
        if self.gru:
            r, bx, br = r[[1, 2, 0]], b[[1, 2, 3]], b[[1, 2, 0]]
        yield "weight_hh", r.flatten(0, 2)
        yield "bias_ih", bx.flatten()
        yield "bias_hh", br.flatten()

    def gradient_of_first(self):
        """The gradients of the first states. FlashRNN has none of m, which scales c and n: it follows from theirs."""
        grad = self.first.grad.float()
        if len(grad) < 4:
            return grad
        m = (self.first.detach().float() * grad)[1:3].sum(0)
        scale = self.scale.to(grad.device)
        return torch.stack([grad[0], grad[1] * scale, grad[2] * scale, m])

    def last(self, states, x):
        """The last states of a layer with the input x, given all states after all steps."""
        last = states[:, -1].detach().float()
        if len(last) < 4:
            return last
        # m without the scaling is the largest of the same terms, but for the first m: that has passed all forget gates.
        product, r, b = self.product(x).detach().float(), *(t.detach().float() for t in (self.r, self.b))
        r = r.permute(order(self.config._internal_recurrent_shape, RECURRENT))[1]
        b = b.permute(order(self.config._internal_bias_shape, BIAS))[1]
        before = torch.cat([self.first[:1].detach(), states[0, :-1].detach()]).float()
        forget = product[:, :, 1] + torch.einsum("hdp,tbhp->tbhd", r, before) + b
        through = self.first_m.to(last.device) + torch.nn.functional.logsigmoid(forget).sum(0)
        m = torch.maximum(last[3], through)
        back = (last[3] - m).exp()
        return torch.stack([last[0], last[1] * back, last[2] * back, m])


class Rival(torch_pass.Pass):
    """A stack of layers."""

    name = f"FlashRNN {version()}"

    def open(self, m):
        answer = super().open(m)
        if self.gpu:
            prepare_package(self.device)
        return answer

    def set(self, p):
        super().set(p)
        if p["cell"] not in CELLS:
            raise Unsupported(f"FlashRNN has lstm, gru, elman and slstm, but no {p['cell']}")
        if p.get("equations"):
            raise Unsupported("FlashRNN has its own cells alone")

    def load(self, file):
        self.file = {name: file[name] for name in file.files}

    def choose(self, knobs):
        """Sets what a pass runs. Layouts depend on the backend."""
        p, backend, given = self.point, BACKENDS[knobs.get("backend", 0)], knobs.get("given")
        if backend == "triton_fused" and p["cell"] not in ("lstm", "slstm"):
            raise Unsupported("FlashRNN's triton_fused has lstm and slstm alone")
        if backend == "cuda_fused" and p["cell"] == "gru":
            raise Unsupported("FlashRNN's cuda_fused has no gru: it would run cuda in its place")
        if knobs.get("graph") and self.train and backend == "cuda_fused":
            raise Unsupported(f"FlashRNN's {backend} waits for the device in its backward pass, which no graph can hold")
        if p["precision"] == "fp32" and backend != "cuda":
            raise Unsupported(f"FlashRNN's {backend} rounds factors of float32 to tf32: ask for tf32")
        if given and p["layers"] > 1:
            raise Unsupported("the product of an upper layer is not given")
        heads = max(1, p.get("heads", 1))
        config = lambda: FlashRNNConfig(
            head_dim=p["hidden"] // heads, num_heads=heads, batch_size=p["batch"], function=CELLS[p["cell"]],
            backend=backend, dtype=TYPES[self.dtype], input_shape=INPUT, output_shape=OUTPUT,
        )
        self.layers = [Layer(self, config(), self.file, i) for i in range(p["layers"])]
        self.major = order("TB", self.layers[0].config._internal_input_shape[:2])
        self.x = self.leaf(self.file["input"].transpose(*self.major, 2))
        dy = self.put(self.file["grad_output"]).unflatten(-1, (heads, p["hidden"] // heads)) if self.train else None
        self.file = None
        self.pass_of(given, dy)
        try:
            self.warm(2)
        except Exception as e:
            if isinstance(e, (AssertionError, ValueError)) or type(e).__name__ == "OutOfResources":  # a shape that it cannot take
                raise Unsupported(f"FlashRNN's {backend}: {(str(e) or 'this shape fails an assertion').splitlines()[0]}") from e
            raise
        if knobs.get("graph"):
            self.capture()

    def pass_of(self, given, dy):
        """Sets what one pass runs."""
        ready = self.layers[0].product(self.x).detach().requires_grad_(self.train) if given else None
        self.given = ready

        def run():
            x, self.inputs, self.all = self.x, [], []
            for layer in self.layers:
                self.inputs.append(x)
                states = layer.run(layer.product(x) if ready is None else ready)
                self.all.append(states)
                x = states[0].permute(*self.major, 2, 3).flatten(2)
            return states[0], None

        self.runs(run, [self.x, *(leaf for layer in self.layers for leaf in layer.leaves()), *([ready] if given else [])], dy)

    def arrays(self):
        last = [layer.last(states, x) for layer, states, x in zip(self.layers, self.all, self.inputs)]
        first = [layer.gradient_of_first() for layer in self.layers] if self.train else None
        arrays = {"output": self.output.flatten(2)}
        for i, s in enumerate(self.states):
            arrays[f"{s}_n"] = torch.stack([t[i].flatten(1) for t in last])
            if self.train:
                arrays[f"grad_{s}_0"] = torch.stack([t[i].flatten(1) for t in first])
        if self.train:
            if self.given is not None:  # what training has left out
                self.x.grad = self.layers[0].w.grad = None
                self.layers[0].product(self.x).backward(self.given.grad)
            arrays["grad_input"] = self.x.grad.permute(*self.major, 2)
            for layer in self.layers:
                for name, gradient in layer.gradients():
                    arrays[f"grad_{name}_l{layer.number}"] = gradient
        return arrays


if __name__ == "__main__":
    protocol.serve(answers, Rival().verbs(hello()))
