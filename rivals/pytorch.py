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
docs/rivals.md describes the protocol.
"""

import importlib
import itertools
import json
import os
import sys
import time

# What libraries print goes to standard error: standard output is the protocol's.
answers = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)

try:
    import numpy as np
    import torch
    import torch.nn.functional as F
    OURS = "--rnnbench" in sys.argv[1:]
    if OURS:
        sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
        import rnnbench_torch
except (ImportError, OSError) as e:
    torch, absent = None, str(e)

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

    def __init__(self, p, file, scripted):
        super().__init__()
        self.run = torch.jit.script(NORMS[p["cell"]]) if scripted else NORMS[p["cell"]]
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


class Unsupported(Exception):
    """Work that PyTorch declines, with the reason."""


def hello(_):
    if torch is None:
        return {"error": f"PyTorch, NumPy or librnnbench.so is not there for {sys.executable}: {absent}"}
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return {
        "name": "rnnbench-torch" if OURS else "pytorch",
        "version": torch.__version__,
        "devices": ["cpu"] + [f"cuda:{i}" for i in range(gpus)],
        "knobs": [
            {"name": name, "doc": doc, "values": [0, 1]}
            for name, doc, here in (
                ("graph", "1: replay the pass as a CUDA graph", gpus > 0),
                ("compile", "1: run the pass by torch.compile", hasattr(torch, "compile") and not OURS),
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
        # cuDNN's persistent kernels, which PyTorch chooses for small layers, approximate sigmoids and
        # hyperbolic tangents: outputs were off by up to 7.2e-6 (9.14, H200).
        "unit_error": {} if OURS else {"cuda": 2.0**-17},
    }


class Rival:
    """The device, and the pass that was prepared last."""

    def open(self, m):
        self.device = torch.device(m["open"])
        self.gpu = self.device.type == "cuda"
        self.threads = m["threads"]
        if self.gpu:
            torch.cuda.set_device(self.device)
        return {"ok": True, "device": torch.cuda.get_device_name(self.device) if self.gpu else "cpu"}

    def prepare(self, m):
        q = m["prepare"]
        self.release()
        try:
            self.load(q["point"], q["data"], q["knobs"])
            self.choose(q["knobs"])
        except Unsupported as e:
            return {"unsupported": str(e)}
        except (NotImplementedError, RuntimeError) as e:
            text = str(e)
            if isinstance(e, NotImplementedError) or "not implemented" in text or "not supported" in text:
                return {"unsupported": f"PyTorch {torch.__version__}: {text.splitlines()[0]}"}
            raise
        return {"ok": True}

    def release(self):
        """Drops what the last pass holds: two large ones may not fit."""
        self.step = self.graph = self.module = self.x = self.start = self.dy = self.output = self.last = self.calling = None
        if self.gpu:
            torch.cuda.empty_cache()

    def load(self, p, path, knobs):
        """Makes the module and its inputs."""
        if p["cell"] not in CELLS:
            raise Unsupported(f"torch.nn has no {p['cell']}")
        if "norm" in p and p["cell"] not in NORMS:
            raise Unsupported(f"there is no scripted {p['cell']} with norm={p['norm']}")
        if p["precision"] == "tf32" and not self.gpu:
            raise Unsupported("tf32 needs a GPU")
        if "calls" in p and self.gpu:
            raise Unsupported("calls are made on a processor alone")
        self.point = p
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = p["precision"] == "tf32"
        dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(p["precision"], torch.float32)
        self.train, self.states = p["pass"] == "train", p["states"]
        with np.load(path) as file:
            put = lambda name: torch.from_numpy(file[name]).to(self.device, dtype)
            more = {"proj_size": p["projection"]} if "projection" in p else {}
            if "norm" in p:
                if "lengths" in p:
                    raise Unsupported("the scripted layers with norm=layer take no packed sequences")
                self.module = Norm(p, file, not knobs.get("compile"))
            else:
                self.module = CELLS[p["cell"]](p["input"], p["hidden"], p["layers"], bidirectional=p.get("direction") == "both", **more)
                with torch.no_grad():
                    for name, w in self.module.named_parameters():
                        w.copy_(torch.from_numpy(file[name]))
            self.module.to(self.device, dtype).requires_grad_(self.train)
            if OURS:
                self.module = ours(self.module, p["precision"])
            self.x = put("input").requires_grad_(self.train)
            self.start = [put(f"{s}_0").requires_grad_(self.train) for s in self.states]
            self.dy = put("grad_output") if self.train else None
        self.sizes = None
        if "lengths" in p:  # as pack_padded_sequence has them: how many sequences each step has
            steps = torch.arange(p["steps"])[:, None]
            self.sizes = (steps < torch.tensor(p["lengths"])).sum(1)

    def choose(self, knobs):
        """Sets self.step, which runs the pass once, and runs it until all is compiled."""
        torch.set_num_threads(1 if knobs.get("single") else self.threads)
        run = self.module
        if knobs.get("compile"):
            dynamo = importlib.import_module("torch._dynamo")
            dynamo.reset()
            if hasattr(dynamo.config, "allow_rnn"):
                dynamo.config.allow_rnn = True
            run = torch.compile(self.module)
        if self.sizes is not None:
            module, pack = run, torch.nn.utils.rnn.PackedSequence

            def run(x, first):
                output, last = module(pack(x, self.sizes), first)
                return output.data, last

        if "calls" in self.point:
            single = self.point["steps"] == 1 and not {"projection", "norm"} & self.point.keys() and not (OURS or knobs.get("compile"))
            self.calling = Step(self.point["cell"], self.module) if single and not knobs.get("layers") else run
            self.given = [self.x]
            self.begin()
        first = self.start[0] if len(self.start) == 1 else tuple(self.start)
        leaves = [*self.module.parameters(), self.x, *self.start]

        def forward():
            with torch.no_grad():
                self.output, self.last = run(self.x, first)

        def train():
            for leaf in leaves:
                leaf.grad = None
            self.output, self.last = run(self.x, first)
            self.output.backward(self.dy)

        def call():
            with torch.inference_mode():
                self.output, self.state = self.calling(self.given[0], self.state)

        self.step = call if self.calling else train if self.train else forward
        if knobs.get("single") and self.gpu:
            raise Unsupported("threads do not matter on a GPU")
        if knobs.get("graph"):
            if not self.gpu:
                raise Unsupported("a CUDA graph needs a GPU")
            try:
                self.capture()
            except RuntimeError as e:
                if "captur" in str(e):
                    raise Unsupported(f"PyTorch {torch.__version__} cannot capture this pass: {str(e).splitlines()[0]}")
                raise
            return
        for _ in range(3 if knobs.get("compile") or "norm" in self.point else 1):  # until all is compiled
            self.step()
        self.wait()
        if self.calling:
            self.begin()

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

    def capture(self):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.step()
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.step()
        self.step = self.graph.replay
        self.step()
        self.wait()

    def wait(self):
        if self.gpu:
            torch.cuda.synchronize()

    def run(self, m):
        n, step = m["run"], self.step
        if not self.gpu:
            start = time.perf_counter()
            for _ in range(n):
                step()
            return {"wall_s": time.perf_counter() - start}
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.wait()
        start = time.perf_counter()
        begin.record()
        for _ in range(n):
            step()
        end.record()
        self.wait()
        return {"wall_s": time.perf_counter() - start, "device_s": begin.elapsed_time(end) / 1e3}

    def read(self, m):
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
        np.savez(m["read"], **{name: np.ascontiguousarray(t.detach().float().cpu().numpy()) for name, t in arrays.items()})
        return {"ok": True}


def main():
    rival = Rival()
    verbs = {"hello": hello, "open": rival.open, "prepare": rival.prepare, "run": rival.run, "call": rival.call, "read": rival.read}
    for line in sys.stdin:
        m = json.loads(line)
        verb = next((v for v in verbs if v in m), None)
        if verb is None:  # close
            return
        try:
            answer = verbs[verb](m)
        except Exception as e:  # the point is lost, and rnnbench ends this process
            answer = {"error": f"{type(e).__name__}: {e}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
