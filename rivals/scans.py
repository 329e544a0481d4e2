#!/usr/bin/env python3
"""Rivals for rnnbench: linear recurrences (gilr, sru, qrnn, mingru, rg-lru) by the scans of a package.

    scans.py accelerated-scan    accelerated_scan of PyPI's accelerated-scan: warp (CUDA C++), scalar (Triton), ref
    scans.py fla                 HGRN's recurrence of PyPI's flash-linear-attention, by chunks or step by step (Triton)
    scans.py torch-scan          torch._higher_order_ops.associative_scan, which PyTorch 2.11 has

rnnbench starts it; rivals/accelerated_scan.toml, fla.toml and torch_scan.toml say how:

    rnnbench sweep --device cuda:0 --rival rivals/fla.toml --impl fla,scan --cell gilr

A layer is a product, the gates, the scan, and the output of the state. torch.compile fuses the gates and
the output into one kernel each (compile=1), and for torch-scan into that of the scan where nothing is kept
for training. Data lies as the package wants it from the start: with time innermost for accelerated-scan, with
units innermost for fla. Products have the point's precision; gates and scans are in fp32, or with
half=1 the vectors of the scan have 16 bits. The first state enters with the first step's term.

accelerated_scan.warp takes a power of two of steps, 32 to 65536: the gates write padded vectors, as
accelerated_scan.ref does, and that takes its time. torch-scan has a gradient by a second scan, from
the last step: that of PyTorch 2.11 itself forms a matrix of steps times steps.

alone=1 times the gates, the scan and the output of a forward pass, without the product; alone=2 their
gradient; alone=3 the package's scan of given factors and terms; alone=4 the gradient of that.
docs/rivals.md describes the protocol.
"""

import contextlib
import importlib
import sys
import types

sys.dont_write_bytecode = True  # no files beside this one
import protocol
from linear_cells import LINEAR
from protocol import Unsupported

answers = protocol.answers()
try:
    import torch
    import torch_pass
except (ImportError, OSError) as e:
    sys.exit(protocol.serve(answers, {"hello": protocol.absent("PyTorch or NumPy", e)}))

WHOLE, FORWARD, BACKWARD, SCAN, SCAN_BACKWARD = range(5)


def one_line(e):
    """An error as a reason."""
    return next(iter(str(e).strip().splitlines()), type(e).__name__)


class Package:
    """Where a scan comes from, and how it takes its vectors."""

    knobs = ()  # name, what its values mean, values
    log = False  # it takes logarithms of factors
    fused = False  # torch.compile takes it

    def load(self):
        """Imports it, and sets its version."""

    def choose(self, rival, knobs):
        """Sets time_last, whether time is innermost, and run, which scans factors and terms."""

    def pad(self, steps):
        """How many steps it wants for so many."""
        return steps


class AcceleratedScan(Package):
    BACKENDS = ["warp", "scalar", "ref"]

    def load(self):
        self.version = importlib.import_module("accelerated_scan").__version__
        self.knobs = (("backend", "0: CUDA C++, 1: Triton, 2: plain PyTorch", [0, 1] if torch_pass.gpus() else [2, 0, 1]),)
        self.loaded = {}

    def choose(self, rival, knobs):
        self.backend, self.time_last = self.BACKENDS[knobs["backend"]], True
        if self.backend not in self.loaded:
            try:
                self.loaded[self.backend] = importlib.import_module(f"accelerated_scan.{self.backend}").scan
            except (Exception, SystemExit) as e:  # it compiles when it is imported
                self.loaded[self.backend] = one_line(e)
        self.run = self.loaded[self.backend]
        if isinstance(self.run, str):
            raise Unsupported(f"accelerated_scan.{self.backend} {self.version} cannot be loaded: {self.run}")
        p = rival.point
        if self.backend == "warp" and p["steps"] > 65536:
            raise Unsupported(f"accelerated_scan.warp {self.version} scans at most 65536 steps")
        if self.backend != "ref" and p["batch"] * p["hidden"] * self.pad(p["steps"]) >= 2**31:
            raise Unsupported(f"accelerated_scan {self.version} has offsets of 32 bits")

    def pad(self, steps):
        return max(32, 1 << (steps - 1).bit_length()) if self.backend == "warp" else steps


class FLA(Package):
    log = True
    knobs = (("recurrent", "0: chunk_hgrn, 1: fused_recurrent_hgrn", [0, 1]),)

    def load(self):
        self.version = importlib.import_module("fla").__version__
        self.ops = importlib.import_module("fla.ops.hgrn")

    def choose(self, rival, knobs):
        self.time_last = False
        hgrn = self.ops.fused_recurrent_hgrn if knobs["recurrent"] else self.ops.chunk_hgrn
        self.run = lambda g, x: hgrn(x, g)[0]


class TorchScan(Package):
    fused = True
    knobs = (
        ("time", "1: time is innermost, 0: units are", [0, 1]),
        ("generic", "1: combine_mode generic, which a processor always has", [0, 1]),
    )

    def load(self):
        self.version = torch.__version__
        try:
            self.scan = importlib.import_module("torch._higher_order_ops.associative_scan").associative_scan
        except ImportError:
            raise ImportError(f"PyTorch {torch.__version__} has no associative_scan, which 2.11 has") from None

    def choose(self, rival, knobs):
        self.time_last = bool(knobs["time"])
        axis, mode = (-1 if self.time_last else 1), "generic" if knobs["generic"] or not rival.gpu else "pointwise"

        def scan(a, b, reverse=False):
            return self.scan(lambda u, v: (u[0] * v[0], u[1] * v[0] + v[1]), (a, b), a.dim() + axis if axis < 0 else axis, reverse, combine_mode=mode)[1]

        def gradient(a, states, g):
            steps = a.shape[axis]
            none = torch.zeros_like(a.narrow(axis, 0, 1))
            db = scan(torch.cat([a.narrow(axis, 1, steps - 1), none], axis), g.contiguous(), True)
            return db * torch.cat([none, states.narrow(axis, 0, steps - 1)], axis), db

        forward, backward = rival.compiled(scan, knobs), rival.compiled(gradient, knobs)

        class Associative(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a, b):
                states = forward(a, b)
                ctx.save_for_backward(a, states)
                return states

            @staticmethod
            def backward(ctx, g):
                return backward(*ctx.saved_tensors, g)

        self.run = Associative.apply if rival.train else scan


PACKAGES = {"accelerated-scan": AcceleratedScan, "fla": FLA, "torch-scan": TorchScan}


class Functions:
    """What cells are made of."""


class Layer:
    """The parameters and first states of a layer, and what its last pass made."""


class Scans(torch_pass.Pass):
    """A stack of linear recurrences."""

    package = None

    def load(self, file):
        if self.point["cell"] not in LINEAR:
            raise Unsupported(f"this program runs {', '.join(LINEAR)}, not {self.point['cell']}")
        self.file = {name: file[name] for name in file.files}

    def place(self):
        """Brings the inputs to the device, as the package wants them."""
        file, p = self.file, self.point
        self.order = (2, 1, 0) if self.package.time_last else (1, 0, 2)  # of T × B × units; it is its own inverse
        self.x = self.leaf(file["input"].transpose(self.order))
        self.dy = self.put(file["grad_output"].transpose(self.order)) if self.train else None
        self.layers = []
        for l in range(p["layers"]):
            layer = Layer()
            layer.w, layer.bias = self.leaf(file[f"weight_ih_l{l}"]), self.leaf(file[f"bias_ih_l{l}"])
            layer.peep = self.leaf(file[f"peephole_l{l}"]) if p.get("peepholes") else None
            layer.first = [self.leaf(file[f"{s}_0"][l]) for s in p["states"]]
            self.layers.append(layer)
        self.file = None

    def compiled(self, f, knobs):
        return torch.compile(f, dynamic=False) if knobs.get("compile") else f

    def choose(self, knobs):
        p, package, alone = self.point, self.package, knobs["alone"]
        if hasattr(torch, "compile"):
            importlib.import_module("torch._dynamo").reset()
            config = importlib.import_module("torch._functorch.config")
            if hasattr(config, "donated_buffer"):
                config.donated_buffer = False  # alone=2 reads it again
        if knobs["half"] and self.dtype == torch.float32:
            raise Unsupported("half=1 needs a precision of 16 bits")
        if alone and (p["layers"] > 1 or p["precision"] != "fp32"):
            raise Unsupported("alone needs one layer in fp32")
        if alone in (BACKWARD, SCAN_BACKWARD) and not self.train:
            raise Unsupported(f"alone={alone} needs training")
        package.choose(self, knobs)
        self.more = package.pad(p["steps"]) - p["steps"]
        self.scanned = self.dtype if knobs["half"] else torch.float32
        self.functions()
        self.place()
        gates, output = self.gates, self.output
        self.gates, self.output = self.compiled(gates, knobs), self.compiled(output, knobs)
        self.recur = self.by_parts
        if package.fused and not self.train and knobs.get("compile"):
            self.gates, self.output = gates, output
            self.recur = self.compiled(self.by_parts, knobs)
        graph = knobs.get("graph") and (self.gpu or None)
        try:
            self.alone = alone
            self.step = self.part(graph) if alone else self.whole
            if graph:
                self.capture()
            else:
                self.warm(3 if knobs.get("compile") else 1)
        except Exception as e:
            if self.gpu:
                raise
            raise Unsupported(f"{self.name} cannot run this on a processor: {one_line(e)}")

    def functions(self):
        """Sets what gates and outputs compute by."""
        nn, same = torch.nn.functional, lambda v: v
        self.f = Functions()
        vars(self.f).update(
            sigmoid=torch.sigmoid, tanh=torch.tanh, relu=torch.relu, softplus=nn.softplus, expm1=torch.expm1, sqrt=torch.sqrt,
            share=nn.logsigmoid if self.package.log else torch.sigmoid, power=same if self.package.log else torch.exp)
        self.factor = torch.exp if self.package.log else same
        self.gates, self.output = self.make_gates, self.make_output

    def product(self, layer, x):
        """The products of all gates: G × H × B × T with time innermost, else B × T × G × H."""
        if self.package.time_last:
            return (layer.w @ x.reshape(x.shape[0], -1)).view(len(self.point["gates"]), -1, *x.shape[1:])
        y = torch.nn.functional.linear(x, layer.w, layer.bias)
        return y.view(*y.shape[:2], len(self.point["gates"]), -1)

    def gate_inputs(self, product, bias):
        """The inputs of the gates in fp32."""
        if self.package.time_last:
            return [(x + b[:, None, None]).float() for x, b in zip(product.float(), bias.view(product.shape[:2]).float())]
        return product.float().unbind(2)

    def make_gates(self, product, bias, peep, first):
        """Factors and terms of the scan."""
        last = self.package.time_last
        if peep is not None:
            peep = [v[:, None, None] if last else v for v in peep.float()]
        a, b = LINEAR[self.point["cell"]][0](self.f, self.gate_inputs(product, bias), peep)
        first = (first.T if last else first).float()
        axis = b.dim() - 1 if last else 1
        b.select(axis, 0).add_(self.factor(a.select(axis, 0)) * first)
        if self.more:
            a, b = torch.nn.functional.pad(a, (0, self.more), value=1.0), torch.nn.functional.pad(b, (0, self.more))
        return a.to(self.scanned).contiguous(), b.to(self.scanned).contiguous()

    def make_output(self, product, bias, states):
        """The outputs of the states of all steps."""
        if self.package.time_last:
            states = states[..., : self.point["steps"]]
        return LINEAR[self.point["cell"]][1](self.f, self.gate_inputs(product, bias), states.float()).to(self.dtype)

    def by_parts(self, product, bias, peep, first):
        states = self.package.run(*self.gates(product, bias, peep, first))
        return self.output(product, bias, states), states

    def whole(self):
        """The pass of all layers."""
        with torch.set_grad_enabled(self.train):
            x = self.x
            for layer in self.layers:
                x, layer.states = self.recur(self.product(layer, x), layer.bias, layer.peep, layer.first[-1])
                layer.output = x
            if self.train:
                leaves = self.leaves()
                self.grads = dict(zip(leaves, torch.autograd.grad(x, list(leaves.values()), self.dy, allow_unused=True)))

    def leaves(self):
        """All that has a gradient, by the name of its array."""
        named = {"input": self.x}
        for l, layer in enumerate(self.layers):
            named |= {f"weight_ih_l{l}": layer.w, f"bias_ih_l{l}": layer.bias}
            if layer.peep is not None:
                named[f"peephole_l{l}"] = layer.peep
            named |= {f"{s}_{l}": v for s, v in zip(self.point["states"], layer.first)}
        return named

    def part(self, graph):
        """A step that is a part of the pass. The rest is computed here or, after it, by finish."""
        layer, chain = self.layers[0], types.SimpleNamespace()
        self.chain = chain
        cut = lambda t: t.detach().requires_grad_(self.train)

        def forward():
            with torch.set_grad_enabled(self.train):
                layer.output, layer.states = self.recur(chain.p, layer.bias, layer.peep, layer.first[-1])

        def scan():
            with torch.set_grad_enabled(self.train):
                layer.states = self.package.run(chain.a, chain.b)

        def backward():
            self.grads = torch.autograd.grad(layer.output, self.given(), self.dy, retain_graph=True, allow_unused=True)

        def scan_backward():
            self.grads = torch.autograd.grad(layer.states, [chain.a, chain.b], chain.g, retain_graph=True)

        self.wait()
        # A gradient runs on the stream of its forward pass, which a graph must have captured.
        with torch.cuda.stream(torch.cuda.graph(torch.cuda.CUDAGraph()).capture_stream) if graph else contextlib.nullcontext():
            with torch.set_grad_enabled(self.train):
                chain.product = self.product(layer, self.x)
                chain.p = cut(chain.product)
                if self.alone in (SCAN, SCAN_BACKWARD):
                    chain.made = self.gates(chain.p, layer.bias, layer.peep, layer.first[-1])
                    chain.a, chain.b = map(cut, chain.made)
            if self.alone == BACKWARD:
                forward()
            if self.alone == SCAN_BACKWARD:
                scan()
                self.put_out()
                chain.g = chain.s.grad
        self.wait()
        return {FORWARD: forward, BACKWARD: backward, SCAN: scan, SCAN_BACKWARD: scan_backward}[self.alone]

    def given(self):
        """What the recurrence of a part has gradients of."""
        layer = self.layers[0]
        return [v for v in (self.chain.p, layer.bias, layer.peep, layer.first[-1]) if v is not None]

    def put_out(self):
        """The output of the states of a scan alone and, in training, the gradients of both."""
        layer, chain = self.layers[0], self.chain
        chain.s = layer.states.detach().requires_grad_(self.train)
        with torch.set_grad_enabled(self.train):
            layer.output = self.output(chain.p, layer.bias, chain.s)
        if self.train:
            layer.output.backward(self.dy, retain_graph=True)

    def finish(self):
        """The gradients of a pass of which a part was timed, by the names of their arrays."""
        layer, chain, add = self.layers[0], self.chain, torch.autograd.backward
        leaves = self.leaves()
        for leaf in [*leaves.values(), chain.p]:
            leaf.grad = None
        if self.alone in (SCAN, SCAN_BACKWARD):
            self.put_out()
        if not self.train:
            return {}
        if self.alone == FORWARD:
            add(layer.output, self.dy, retain_graph=True)
        if self.alone == BACKWARD:
            for leaf, grad in zip(self.given(), self.grads):
                leaf.grad = grad
        if self.alone in (SCAN, SCAN_BACKWARD):
            grads = self.grads if self.alone == SCAN_BACKWARD else torch.autograd.grad(layer.states, [chain.a, chain.b], chain.s.grad, retain_graph=True)
            add(chain.made, grads, retain_graph=True)
        add(chain.product, chain.p.grad, retain_graph=True)
        return {name: leaf.grad for name, leaf in leaves.items()}

    def arrays(self):
        grads = self.finish() if self.alone else self.grads if self.train else {}
        p, last = self.point, self.package.time_last
        arrays = {"output": self.layers[-1].output.permute(self.order)}
        at = lambda t: t[..., p["steps"] - 1].T if last else t[:, p["steps"] - 1]
        for i, s in enumerate(p["states"]):
            arrays[f"{s}_n"] = torch.stack([at(layer.states if i else layer.output).float() for layer in self.layers])
        if not self.train:
            return arrays
        zero = lambda name, like: torch.zeros_like(like) if grads[name] is None else grads[name]
        leaves = self.leaves()
        for name, leaf in leaves.items():
            arrays[f"grad_{name}"] = zero(name, leaf)
        arrays["grad_input"] = arrays["grad_input"].permute(self.order)
        for s in p["states"]:
            arrays[f"grad_{s}_0"] = torch.stack([arrays.pop(f"grad_{s}_{l}") for l in range(p["layers"])])
        return arrays


def hello(name, package):
    """The answer to hello. It imports the package."""
    try:
        package.load()
    except Exception as e:
        return protocol.absent(name, one_line(e))({})
    gpus = torch_pass.gpus()
    return {
        "name": name,
        "version": package.version,
        "devices": torch_pass.devices(True),
        "precisions": ["fp32", "bf16", "fp16"] + (["tf32"] if gpus else []),
        "knobs": [
            {"name": name, "doc": doc, "values": values}
            for name, doc, values in (
                # What is known to be the fastest comes first.
                *([("graph", "1: replay the pass as a CUDA graph", [1, 0])] if gpus else []),
                *([("compile", "1: fuse gates by torch.compile", [1, 0])] if hasattr(torch, "compile") else []),
                ("half", "1: scan vectors of 16 bits", [0, 1]),
                *package.knobs,
            )
        ]
        + [{"name": "alone", "doc": "what is timed", "values": [WHOLE, FORWARD, BACKWARD, SCAN, SCAN_BACKWARD], "internal": True}],
    }


def main(name):
    package = PACKAGES[name]()
    said = hello(name, package)
    Scans.package, Scans.name = package, f"{name} {said.get('version')}"
    protocol.serve(answers, Scans().verbs(said))


if __name__ == "__main__":
    main(sys.argv[1])
