#!/usr/bin/env python3
"""A rival for rnnbench: torch.nn.RNN, GRU and LSTM, the last with a projection too (proj_size). Layers
with norm=layer are scripted (torch.jit.script), as in PyTorch's benchmarks/fastrnns.

Needs PyTorch and NumPy: Debian's python3-torch for the processor (slow without
libopenblas0-pthread), 2.0 or newer for compile=1, a build with CUDA for GPUs. rnnbench starts it; rivals/pytorch.toml says how:

    rnnbench sweep --rival rivals/pytorch.toml --impl pytorch,cudnnstyle

Knobs: graph=1 replays the pass as a CUDA graph, compile=1 runs it by torch.compile, single=1
computes with one thread.

Calls of one step are made by torch.nn.RNNCell, GRUCell and LSTMCell, in inference mode: a call of lstm 32 takes
50 µs, and 78 by torch.nn.LSTM (1.13, Zen 3, one thread). layers=1 makes them by the layers all the same.
Calls run on a processor alone.

With the argument --rnnbench, python/rnnbench_torch takes the place of torch.nn: the winner of a
sweep as its users run it (rivals/takehome.toml).

Sequences with lengths of their own are a PackedSequence from the start: nothing is packed while it is timed.
With resets, each sequence is split where it begins anew, and the pieces are a PackedSequence. Where each step
goes is known from the start; moving the input there and the output back is timed, as a rollout arrives whole.
docs/rivals.md describes the protocol.
"""

import functools
import importlib
import itertools
import os
import sys
import time

sys.dont_write_bytecode = True  # no files beside this one
import protocol
from protocol import Unsupported

answers = protocol.answers()
try:
    import numpy as np
    import torch
    import torch.nn.functional as F
    import torch_pass
    OURS = "--rnnbench" in sys.argv[1:]
    if OURS:
        sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
        import rnnbench_torch
except (ImportError, OSError) as e:
    sys.exit(protocol.serve(answers, {"hello": protocol.absent("PyTorch, NumPy or librnnbench.so", e)}))

CELLS = {
    "rnn-tanh": lambda *sizes, **ways: torch.nn.RNN(*sizes, nonlinearity="tanh", **ways),
    "rnn-relu": lambda *sizes, **ways: torch.nn.RNN(*sizes, nonlinearity="relu", **ways),
    "gru": lambda *sizes, **ways: torch.nn.GRU(*sizes, **ways),
    "lstm": lambda *sizes, **ways: torch.nn.LSTM(*sizes, **ways),
}

STEPS = {
    "rnn-tanh": lambda *sizes: torch.nn.RNNCell(*sizes, nonlinearity="tanh"),
    "rnn-relu": lambda *sizes: torch.nn.RNNCell(*sizes, nonlinearity="relu"),
    "gru": lambda *sizes: torch.nn.GRUCell(*sizes),
    "lstm": lambda *sizes: torch.nn.LSTMCell(*sizes),
}


class Step:
    """One step of a stack of layers, by torch.nn's cells with the layers' parameters. A state is a
    tuple of tensors for each layer."""

    def __init__(self, cell, module):
        self.cells = []
        for l in range(module.num_layers):
            one = STEPS[cell](module.hidden_size if l else module.input_size, module.hidden_size)
            for name, _ in list(one.named_parameters()):
                setattr(one, name, getattr(module, f"{name}_l{l}"))
            self.cells.append(one)

    @staticmethod
    def first(states):
        """The first states of Step from those of torch.nn's layers."""
        return [tuple(s[l] for s in states) if len(states) > 1 else states[0][l] for l in range(len(states[0]))]

    @staticmethod
    def last(states):
        """Those of torch.nn's layers from Step's."""
        return tuple(map(torch.stack, zip(*states))) if isinstance(states[0], tuple) else torch.stack(states)

    def __call__(self, x, states):
        x, after = x[0], []
        for cell, state in zip(self.cells, states):
            state = cell(x, state)
            x = state[0] if isinstance(state, tuple) else state
            after.append(state)
        return x[None], after


def norm_lstm(x, h, c, w_ih, w_hh, b_ih, b_hh, g_ih, g_hh):
    """A layer of an LSTM that normalises its products and cell states: the input products of all steps at
    once, and the rest step by step."""
    n, out = h.size(1), []
    gates = F.layer_norm(F.linear(x, w_ih), [4 * n], g_ih, b_ih)
    for t in range(x.size(0)):
        i, f, g, o = (gates[t] + F.layer_norm(F.linear(h, w_hh), [4 * n], g_hh[: 4 * n], b_hh[: 4 * n])).chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(F.layer_norm(c, [n], g_hh[4 * n :], b_hh[4 * n :]))
        out.append(h)
    return torch.stack(out), h, c


def norm_gru(x, h, w_ih, w_hh, b_ih, b_hh, g_ih, g_hh):
    n, out = h.size(1), []
    gates = F.layer_norm(F.linear(x, w_ih), [3 * n], g_ih, b_ih)
    for t in range(x.size(0)):
        xr, xz, xn = gates[t].chunk(3, 1)
        hr, hz, hn = F.layer_norm(F.linear(h, w_hh), [3 * n], g_hh, b_hh).chunk(3, 1)
        z = torch.sigmoid(xz + hz)
        h = (1 - z) * torch.tanh(xn + torch.sigmoid(xr + hr) * hn) + z * h
        out.append(h)
    return torch.stack(out), h


def norm_rnn(x, h, w_ih, w_hh, b_ih, b_hh, g_ih, g_hh):
    n, out = h.size(1), []
    gates = F.layer_norm(F.linear(x, w_ih), [n], g_ih, b_ih)
    for t in range(x.size(0)):
        h = torch.tanh(gates[t] + F.layer_norm(F.linear(h, w_hh), [n], g_hh, b_hh))
        out.append(h)
    return torch.stack(out), h


NORMS = {"lstm": norm_lstm, "gru": norm_gru, "rnn-tanh": norm_rnn}


class Norm(torch.nn.Module if torch else object):
    """A stack of layers that normalise, with arguments and results of torch.nn's. file has the parameters."""

    PARAMETERS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "gain_ih", "gain_hh")

    def __init__(self, p, file):
        super().__init__()
        self.run = NORMS[p["cell"]]
        self.ways = [""] + ["_reverse"] * (p.get("direction") == "both")
        self.layers = p["layers"]
        for l, way, name in itertools.product(range(self.layers), self.ways, self.PARAMETERS):
            full = f"{name}_l{l}{way}"
            setattr(self, full, torch.nn.Parameter(torch.from_numpy(file[full])))

    def forward(self, x, first):
        first, last = first if isinstance(first, tuple) else (first,), []
        for l in range(self.layers):
            outputs = []
            for k, way in enumerate(self.ways):
                states = [s[l * len(self.ways) + k] for s in first]
                out, *states = self.run(x.flip(0) if way else x, *states, *(getattr(self, f"{name}_l{l}{way}") for name in self.PARAMETERS))
                outputs.append(out.flip(0) if way else out)
                last.append(states)
            x = torch.cat(outputs, 2) if len(outputs) > 1 else outputs[0]
        last = tuple(map(torch.stack, zip(*last)))
        return x, last if len(last) > 1 else last[0]


def ours(module, precision):
    """Returns rnnbench's module with the parameters of one of torch.nn's."""
    return getattr(rnnbench_torch, type(module).__name__).from_torch(module, precision=precision)


class Pieces:
    """Sequences that are split where they begin anew. The pieces are packed, the longest first."""

    def __init__(self, reset, layers, ways):
        steps, batch = reset.shape
        begins = reset.astype(bool)
        begins[0] = True
        first = np.maximum.accumulate(np.where(begins, np.arange(steps)[:, None], 0))  # step of the piece's begin
        piece = (np.cumsum(begins.T.ravel()) - 1).reshape(batch, steps).T
        lengths = np.bincount(piece.ravel())
        order = np.argsort(-lengths, kind="stable")
        rank = np.argsort(order, kind="stable")
        self.sizes = torch.from_numpy(np.bincount(np.concatenate([np.arange(n) for n in lengths]), minlength=lengths.max()))
        before = np.concatenate(([0], np.cumsum(self.sizes.numpy())[:-1]))
        self.rows = torch.from_numpy((before[np.arange(steps)[:, None] - first] + rank[piece]).ravel())
        # Rows of the states of all layers and ways: those that a sequence begins with, and those it ends with.
        early, late = rank[piece[0]], rank[piece[-1]]
        at = lambda forward, back: torch.from_numpy(np.concatenate([i * len(lengths) + (back if i % ways else forward) for i in range(layers * ways)]))
        self.first, self.last, self.states = at(early, late), at(late, early), (layers * ways, len(lengths))

    def to(self, device):
        self.rows, self.first, self.last = (t.to(device) for t in (self.rows, self.first, self.last))
        return self

    def __call__(self, module, x, first):
        """Runs a module of torch.nn on the pieces."""
        split = lambda s: s.new_zeros(self.states[0] * self.states[1], s.shape[2]).index_copy(0, self.first, s.flatten(0, 1)).view(*self.states, -1)
        joined = lambda s, like: s.flatten(0, 1).index_select(0, self.last).view_as(like)
        packed = torch.nn.utils.rnn.PackedSequence(x.new_empty(x.shape[0] * x.shape[1], x.shape[2]).index_copy(0, self.rows, x.flatten(0, 1)), self.sizes)
        several = isinstance(first, tuple)
        output, last = module(packed, tuple(map(split, first)) if several else split(first))
        last = tuple(map(joined, last, first)) if several else joined(last, first)
        return output.data.index_select(0, self.rows).view(*x.shape[:2], -1), last


def hello():
    gpus = torch_pass.gpus()
    return {
        "name": "rnnbench-torch" if OURS else "pytorch",
        "version": protocol.version(torch.__version__, torch.__config__.show(), protocol.libraries()),
        "devices": torch_pass.devices(cpu=True),
        "knobs": [
            {"name": name, "doc": doc, "values": [0, 1], "internal": name == "compile" and not hasattr(torch, "compile")}
            for name, doc, here in (
                ("graph", "1: replay the pass as a CUDA graph", gpus > 0),
                ("compile", "1: run the pass by torch.compile", not OURS),
                # Threads of PyTorch and of its BLAS may be in each other's way.
                ("single", "1: compute with one thread, which may be faster than several", not OURS),
                ("layers", "1: make calls of one step by torch.nn.LSTM, not by LSTMCell, which is faster", not OURS),
            )
            if here
        ],
        "precisions": ["fp32", "bf16", "fp16"] + (["tf32"] if gpus else []),
        "directions": ["forward", "both"],
        "lengths": True,
        "projection": True,
        "norms": [] if OURS else ["layer"],
        "calls": True,
        "resets": not OURS,
        # cuDNN's persistent kernels, which PyTorch chooses for small layers, approximate sigmoids and
        # hyperbolic tangents: outputs were off by up to 7.2e-6 (9.14, H200).
        "unit_error": {} if OURS else {"cuda": 2.0**-17},
    }


class Rival(torch_pass.Pass):
    """A module of torch.nn, or of rnnbench_torch."""

    calling = None  # what makes a call

    def load(self, file):
        """Makes the module and its inputs."""
        p = self.point
        if p["cell"] not in CELLS:
            raise Unsupported(f"torch.nn has no {p['cell']}")
        if "calls" in p and self.gpu:
            raise Unsupported("calls are made on a processor alone")
        more = {"proj_size": p["projection"]} if "projection" in p else {}
        ways = 2 if p.get("direction") == "both" else 1
        if "norm" in p:
            if p["cell"] not in NORMS:
                raise Unsupported(f"there is no scripted {p['cell']} with norm={p['norm']}")
            if {"lengths", "resets"} & p.keys():
                raise Unsupported("the scripted layers with norm=layer take no packed sequences")
            self.module = Norm(p, file)
        else:
            self.module = CELLS[p["cell"]](p["input"], p["hidden"], p["layers"], bidirectional=ways == 2, **more)
            with torch.no_grad():
                for name, w in self.module.named_parameters():
                    w.copy_(torch.from_numpy(file[name]))
        self.module.to(self.device, self.dtype).requires_grad_(self.train)
        if OURS:
            self.module = ours(self.module, p["precision"])
        self.x = self.leaf(file["input"])
        self.start = [self.leaf(file[f"{s}_0"]) for s in self.states]
        self.dy = self.put(file["grad_output"]) if self.train else None
        self.sizes = self.pieces = None
        if "lengths" in p:  # as pack_padded_sequence has them: how many sequences each step has
            steps = torch.arange(p["steps"])[:, None]
            self.sizes = (steps < torch.tensor(p["lengths"])).sum(1)
        if "resets" in p:
            self.pieces = Pieces(file["reset"], p["layers"], ways).to(self.device)

    def choose(self, knobs):
        """Sets what a pass runs, and runs it until all is compiled."""
        torch.set_num_threads(1 if knobs.get("single") else self.threads)
        run = self.module
        if knobs.get("compile"):
            if not hasattr(torch, "compile"):
                raise Unsupported(f"PyTorch {torch.__version__} has no torch.compile, which 2.0 has")
            dynamo = importlib.import_module("torch._dynamo")
            dynamo.reset()
            if hasattr(dynamo.config, "allow_rnn"):
                dynamo.config.allow_rnn = True
            run = torch.compile(self.module)
        elif isinstance(run, Norm):
            run.run = torch.jit.script(run.run)
        if self.sizes is not None:
            module, pack = run, torch.nn.utils.rnn.PackedSequence

            def run(x, first):
                output, last = module(pack(x, self.sizes), first)
                return output.data, last
        elif self.pieces is not None:
            run = functools.partial(self.pieces, run)

        first = self.start[0] if len(self.start) == 1 else tuple(self.start)
        self.runs(lambda: run(self.x, first), [*self.module.parameters(), self.x, *self.start], self.dy)
        if "calls" in self.point:
            single = self.point["steps"] == 1 and not {"projection", "norm"} & self.point.keys() and not (OURS or knobs.get("compile"))
            self.calling = Step(self.point["cell"], self.module) if single and not knobs.get("layers") else run
            self.given, self.step = [self.x], self.make
            self.begin()
        if knobs.get("single") and self.gpu:
            raise Unsupported("threads do not matter on a GPU")
        if knobs.get("graph"):
            self.capture()
            return
        self.warm(3 if knobs.get("compile") or "norm" in self.point else 1)
        if self.calling:
            self.begin()

    def make(self):
        """Makes one call."""
        with torch.inference_mode():
            self.output, self.state = self.calling(self.given[0], self.state)

    def begin(self):
        """Sets the states that the next call reads to the first ones."""
        self.state = self.start[0] if len(self.start) == 1 else tuple(self.start)
        if isinstance(self.calling, Step):
            self.state = Step.first(self.start)

    def call(self, m):
        """Makes calls with inputs in turns, and times each."""
        if "data" in m:
            with np.load(m["data"]) as file:
                put = lambda name: torch.from_numpy(file[name]).to(self.x.dtype)
                self.given = list(put("input"))
                if f"{self.states[0]}_0" in file:
                    self.start = [put(f"{s}_0") for s in self.states]
                    self.begin()
        run, state, clock, times = self.calling, self.state, time.perf_counter, []
        with torch.inference_mode():
            end = clock() + m.get("settle_s", 0)
            while clock() < end:  # all from the same states
                run(self.given[0], state)
            for x in itertools.islice(itertools.cycle(self.given), m["call"]):
                start = clock()
                output, state = run(x, state)
                times.append(clock() - start)
        self.output, self.state = output, state
        return {"calls_s": [round(t, 9) for t in times]}

    def arrays(self):
        arrays = {"output": self.output}
        if self.calling:
            self.last = Step.last(self.state) if isinstance(self.calling, Step) else self.state
        last = self.last if isinstance(self.last, tuple) else (self.last,)
        for s, first, state in zip(self.states, self.start, last):
            arrays[f"{s}_n"] = state.reshape(first.shape)  # torch.compile of 2.11 adds a dimension
            if self.train:
                arrays[f"grad_{s}_0"] = first.grad
        if self.train:
            arrays["grad_input"] = self.x.grad
            for name, w in self.module.named_parameters():
                arrays[f"grad_{name}"] = w.grad
        return arrays


if __name__ == "__main__":
    rival = Rival()
    protocol.serve(answers, {**rival.verbs(hello()), "call": rival.call})
