"""Times torch.nn's LSTM or GRU and ours, alternating in one process.

    python3 benchmark.py [--device cuda] [-o FILE] [cell=lstm,input=512,hidden=512,layers=2,batch=16,steps=100 ...]

A row is a shape and one of: forward, training (forward and backward), model (a whole training step of the
model in examples/char_rnn.py), and overhead (a call's time less that of rnnbench_forward, at a tiny shape).
Times are medians; ratio says how many times as fast as torch.nn we are. On a CPU, see that PyTorch has a fast
BLAS: Debian's python3-torch uses the system's, which is slow without libopenblas0.
"""

import argparse
import array
import json
import os
import statistics
import sys
import time

import torch

here = os.path.dirname(os.path.abspath(__file__))
sys.path += [here, os.path.join(here, "examples")]

import rnnbench_torch  # noqa: E402
from char_rnn import CharRNN  # noqa: E402
from rnnbench_torch import library  # noqa: E402

DEFAULTS = {"cell": "lstm", "input": 0, "hidden": 256, "layers": 1, "batch": 16, "steps": 50, "dtype": "float32"}
SHAPES = ["hidden=128,batch=1", "hidden=256", "hidden=512,layers=2", "cell=gru,hidden=256"]
TINY = "hidden=4,batch=1,steps=1"


def shape_of(text):
    """Returns a shape from key=value pairs. An input of 0 is as wide as hidden."""
    shape = dict(DEFAULTS)
    for pair in text.split(","):
        key, _, value = pair.partition("=")
        if key not in shape:
            raise SystemExit(f"benchmark.py: unknown key {key}: there are {', '.join(shape)}")
        shape[key] = type(DEFAULTS[key])(value)
    shape["input"] = shape["input"] or shape["hidden"]
    return shape


class Clock:
    """Times calls in seconds, and waits for a GPU before and after."""

    def __init__(self, device, seconds):
        self.device, self.seconds = device, seconds

    def once(self, call, n):
        self.wait()
        start = time.perf_counter()
        for _ in range(n):
            call()
        self.wait()
        return (time.perf_counter() - start) / n

    def wait(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def alternate(self, calls):
        """Returns the samples of each call, taken in turns."""
        for call in calls:
            self.once(call, 3)
        n = max(1, int(self.seconds / 20 / max(self.once(call, 1) for call in calls)))
        samples = [[] for _ in calls]
        end = time.perf_counter() + self.seconds * len(calls)
        while time.perf_counter() < end or len(samples[0]) < 5:
            for call, s in zip(calls, samples):
                s.append(self.once(call, n))
        return samples


def modules(shape, device, technique):
    """Returns torch.nn's module and ours, with the same parameters."""
    kind = shape["cell"].upper()
    theirs = getattr(torch.nn, kind)(shape["input"], shape["hidden"], shape["layers"])
    theirs = theirs.to(device, getattr(torch, shape["dtype"]))
    return theirs, getattr(rnnbench_torch, kind).from_torch(theirs, technique=technique)


def forward(shape, device, technique):
    """Returns our module, and the calls of both modules without gradients."""
    pair = modules(shape, device, technique)
    x = torch.randn(shape["steps"], shape["batch"], shape["input"], device=device, dtype=pair[0].weight_ih_l0.dtype)

    def call(module):
        with torch.no_grad():
            module(x)
    return pair[1], [lambda m=m: call(m) for m in pair]


def training(shape, device, technique):
    """Returns our module, and the calls of both, forward and backward, with gradients of the input and the parameters."""
    pair = modules(shape, device, technique)
    x = torch.randn(shape["steps"], shape["batch"], shape["input"], device=device, dtype=pair[0].weight_ih_l0.dtype, requires_grad=True)
    gradient = torch.randn(shape["steps"], shape["batch"], shape["hidden"], device=device, dtype=x.dtype)

    def call(module):
        torch.autograd.grad(module(x)[0], [x, *module.parameters()], gradient)
    return pair[1], [lambda m=m: call(m) for m in pair]


def model(shape, device, technique, symbols=96):
    """Returns our module, and the training steps of two models of characters. They have LSTMs in float32."""
    calls = []
    data = torch.randint(symbols, (shape["steps"] + 1, shape["batch"]), device=device)
    for fast in False, True:
        torch.manual_seed(1)
        net = CharRNN(symbols, shape["hidden"], shape["layers"]).to(device)
        if fast:
            net.lstm = rnnbench_torch.LSTM.from_torch(net.lstm, technique=technique)
        optimizer = torch.optim.Adam(net.parameters(), 0.001)

        def step(net=net, optimizer=optimizer):
            loss = torch.nn.functional.cross_entropy(net(data[:-1])[0].flatten(0, 1), data[1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        calls.append(step)
    return net.lstm, calls


def plans(module):
    """Returns what the library says of a module's plans."""
    return [library.describe(plan.handle) for stack in module._stacks.values() for free in stack.free.values() for plan in free]


def overhead(clock, technique, rounds):
    """Returns samples of calls and of rnnbench_forward alone, in turns, at a tiny shape: without gradients, then forward and backward."""
    shape = shape_of(TINY)
    result = {}
    for name, make in ("forward", forward), ("training", training):
        fast, (_, call) = make(shape, clock.device, technique)
        call()
        stack, = fast._stacks.values()
        (plan,), = stack.free.values()
        stream = library._stream(torch.empty(0, device=clock.device))

        def bare():
            plan.library.rnnbench_forward(plan.handle, stream)
            if plan.training:
                plan.library.rnnbench_backward(plan.handle, stream)
        kept = [torch.empty(s, device=clock.device, dtype=torch.float32) for s in plan.shape.values()]
        samples = []
        for _ in range(rounds):
            call()  # reads the parameters
            whole = clock.once(call, 50)
            plan.memory[:] = array.array("Q", [t.data_ptr() for t in kept])  # what the call bound is freed
            plan.library.rnnbench_bind_all(plan.handle, *plan.bound)
            samples.append((whole, clock.once(bare, 50)))
            plan.addresses = None
        result[name] = [list(s) for s in zip(*samples)]
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="*", default=SHAPES, metavar="SHAPE", help="key=value pairs with commas between: " + ", ".join(DEFAULTS))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--what", default="forward,training,model,overhead", help="rows to measure")
    parser.add_argument("--technique", default="auto")
    parser.add_argument("--threads", type=int, help="threads of PyTorch and of ours, by default PyTorch's choice")
    parser.add_argument("--seconds", type=float, default=2, help="time of each side of a row")
    parser.add_argument("-o", "--out", help="file that gets one JSON record a row, with all samples")
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    clock = Clock(torch.device(arguments.device), arguments.seconds)
    out = open(arguments.out, "a") if arguments.out else None
    common = {"device": arguments.device, "technique": arguments.technique, "threads": torch.get_num_threads(),
              "torch": torch.__version__, "rnnbench": rnnbench_torch.version()}

    def record(row):
        if out:
            print(json.dumps({**row, **common}), file=out, flush=True)

    print(f"{'shape':<58} {'what':<9} {'torch.nn ms':>12} {'ours ms':>12} {'ratio':>7}")
    rows = {"forward": forward, "training": training, "model": model}
    for text in arguments.shapes:
        shape = shape_of(text)
        for what in filter(rows.get, arguments.what.split(",")):
            if what == "model" and (shape["cell"], shape["dtype"]) != ("lstm", "float32"):
                continue
            module, calls = rows[what](shape, clock.device, arguments.technique)
            theirs, ours = clock.alternate(calls)
            a, b = statistics.median(theirs), statistics.median(ours)
            print(f"{text:<58} {what:<9} {a * 1e3:12.4f} {b * 1e3:12.4f} {a / b:7.2f}")
            record({"what": what, **shape, "torch_seconds": theirs, "ours_seconds": ours, "plans": plans(module)})
    if "overhead" in arguments.what.split(","):
        for name, (whole, bare) in overhead(clock, arguments.technique, 50).items():
            a, b = statistics.median(whole), statistics.median(bare)
            print(f"{TINY:<58} {name}: {a * 1e6:.1f} µs a call, of which the library's passes take {b * 1e6:.1f}: overhead {(a - b) * 1e6:.1f} µs, lowest {(min(whole) - min(bare)) * 1e6:.1f}")
            record({"what": "overhead", "pass": name, **shape_of(TINY), "call_seconds": whole, "bare_seconds": bare})


if __name__ == "__main__":
    main()
