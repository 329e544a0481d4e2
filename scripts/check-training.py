#!/usr/bin/env python3
"""Compare ten iterations of training by rnnbench with PyTorch.

Runs `rnnbench train` on characters of a random text for cells of torch.nn, by
several techniques and optimisers. Trains the same network by PyTorch in double
precision, from the same first weights, which `rnnbench export` writes. This
script forms the same minibatches itself. States are carried from minibatch to
minibatch. The loss is the cross-entropy of steps, not the CTC loss of transcripts. The difference of all weights must be at most 1e-4 of their norm.
The table also shows the difference of PyTorch in single precision.

Exit status: 0 if all weights agree or PyTorch is missing, 1 if some differ,
2 if rnnbench gives no weights.
"""

import argparse
import collections
import os
import pathlib
import random
import shlex
import subprocess
import sys
import tempfile

LARGEST = 1e-4  # relative norm of the difference of all weights
ITERATIONS = 10
SEED = 3

CELLS = ["rnn-tanh", "rnn-relu", "gru", "lstm"]
IMPLS = ["naive", "cudnnstyle", "persistent", "scc"]
OPTIMIZERS = ["adam:lr=0.01:eps=1e-8", "sgd:lr=0.1", "sgd:lr=0.1:momentum=0.9:clip=0.25", "sgd:lr=0.1:momentum=0.9:nesterov=1:anneal=1.2:epoch=3", "adam:lr=0.003:eps=1e-8:clip=0.1"]
SIZES = [{"hidden": 17, "batch": 5, "steps": 11, "layers": 2, "vocabulary": 13}, {"hidden": 64, "batch": 8, "steps": 20, "layers": 1, "vocabulary": 255}]


def fail(message):
    print(f"check-training: {message}", file=sys.stderr)
    sys.exit(2)


def rnnbench(args, *flags):
    command = [args.rnnbench, *map(str, flags), *shlex.split(args.flags)]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except OSError as e:
        fail(f"{shlex.join(command)}: {e.strerror}")
    if done.returncode != 0:
        fail(f"{shlex.join(command)}: exit status {done.returncode}\n{done.stdout.rstrip()}")
    return done.stdout


def random_text():
    """Random characters, some more frequent than others, so that there is something to learn."""
    rng = random.Random(SEED)
    return "".join(chr(ord("!") + min(int(rng.expovariate(0.15)), 60)) for _ in range(6000))


class Text:
    """Minibatches as rnnbench's task `text` forms them."""

    def __init__(self, text, size):
        used = text[: len(text) - len(text) // 10]  # the rest is held out
        count = collections.Counter(used)
        order = sorted(count, key=lambda c: (-count[c], c))[: size["vocabulary"]]
        rank = {c: i for i, c in enumerate(order)}
        self.classes = len(order) + 1
        self.symbols = np.array([rank.get(c, len(order)) for c in used])
        self.batch, self.steps, self.at = size["batch"], size["steps"], 0
        self.stretch = len(used) // self.batch

    def next(self):
        """Symbols and classes, steps × batch."""
        if self.at + self.steps + 1 > self.stretch:
            self.at = 0
        starts = [b * self.stretch + self.at for b in range(self.batch)]
        rows = np.stack([self.symbols[s : s + self.steps + 1] for s in starts], axis=1)
        self.at += self.steps
        return torch.from_numpy(rows[:-1]), torch.from_numpy(rows[1:])


def first_weights(args, cell, size, classes, folder):
    path = os.path.join(folder, "first.npz")
    point = f"H={size['hidden']},B={size['batch']},T={size['steps']},L={size['layers']},I={classes},O={classes}"
    rnnbench(args, "export", "--cell", cell, "--pass", "train", "--impl", "naive", "--point", point, "--onehot=true", "--seed", SEED, "-f", path)
    with np.load(path) as file:
        return {n: torch.from_numpy(file[n]).double() for n in file.files if n.startswith(("weight_", "bias_"))}


def trained(args, cell, impl, optimizer, size, text, folder):
    """The weights after training by rnnbench."""
    out = tempfile.mkdtemp(dir=folder)
    rnnbench(args, "train", "--data", f"text:{text}:vocabulary={size['vocabulary']}", "--cell", cell, "--impl", impl, "--optimizer", optimizer,
             "--hidden", size["hidden"], "--batch", size["batch"], "--steps", size["steps"], "--layers", size["layers"], "--seed", SEED,
             "--iterations", ITERATIONS, "--every", ITERATIONS, "--held-out", 0, "--out", out)
    found = list(pathlib.Path(out).glob("**/checkpoint-*.npz"))
    if len(found) != 1:
        fail(f"{len(found)} checkpoints in {out}, not one")
    with np.load(found[0]) as file:
        return {n: torch.from_numpy(file[n]).double() for n in file.files if n.startswith(("weight_", "bias_")) and ".moment" not in n}


def settings(spec):
    rule, *rest = spec.split(":")
    return rule, {k: float(v) for k, v in (part.split("=") for part in rest)}


def train(cell, optimizer, size, source, weights, kind):
    """The weights after training by PyTorch in a floating-point type, and the mean loss of the last minibatch."""
    sizes = (source.classes, size["hidden"], size["layers"])
    module = {
        "rnn-tanh": lambda: torch.nn.RNN(*sizes, nonlinearity="tanh"),
        "rnn-relu": lambda: torch.nn.RNN(*sizes, nonlinearity="relu"),
        "gru": lambda: torch.nn.GRU(*sizes),
        "lstm": lambda: torch.nn.LSTM(*sizes),
    }[cell]().to(kind)
    module.load_state_dict({n: w for n, w in weights.items() if not n.endswith("_out")})
    head = torch.nn.Linear(size["hidden"], source.classes).to(kind)
    head.load_state_dict({"weight": weights["weight_out"], "bias": weights["bias_out"]})
    params = [*module.parameters(), *head.parameters()]
    rule, with_ = settings(optimizer)
    if rule == "adam":
        optim = torch.optim.Adam(params, lr=with_["lr"], eps=with_["eps"])
    else:
        optim = torch.optim.SGD(params, lr=with_["lr"], momentum=with_.get("momentum", 0), nesterov=bool(with_.get("nesterov", 0)))
    annealing = torch.optim.lr_scheduler.StepLR(optim, int(with_.get("epoch", ITERATIONS)), 1 / with_.get("anneal", 1))
    states = None
    for _ in range(ITERATIONS):
        symbols, target = source.next()
        output, states = module(torch.nn.functional.one_hot(symbols, source.classes).to(kind), states)
        states = tuple(s.detach() for s in states) if isinstance(states, tuple) else states.detach()
        loss = torch.nn.functional.cross_entropy(head(output).flatten(0, 1), target.flatten())
        optim.zero_grad()
        loss.backward()
        if "clip" in with_:
            torch.nn.utils.clip_grad_norm_(params, with_["clip"])
        optim.step()
        annealing.step()
    after = {**dict(module.named_parameters()), "weight_out": head.weight, "bias_out": head.bias}
    return {n: w.detach().double() for n, w in after.items()}, loss.item()


def norm(tensors):
    return sum(float((t**2).sum()) for t in tensors) ** 0.5


def compare(got, want, first):
    """The norm of the difference, relative to the norm of the weights and to the norm of their change."""
    difference = []
    for name, w in want.items():
        g = got.get(name)
        if g is None:
            fail(f"the checkpoint has no {name}")
        if name == "weight_ih_l0":
            g = g.T  # rnnbench stores a table with a row for each symbol
        difference.append(g.reshape(w.shape) - w)
    apart = norm(difference)
    return apart / norm(want.values()), apart / norm([want[n] - first[n] for n in want])


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description="Compare ten iterations of training by rnnbench with PyTorch.")
    parser.add_argument("rnnbench", nargs="?", default=os.environ.get("RNNBENCH", str(root / "bin" / "rnnbench")),
                        help="the program (default: $RNNBENCH, else bin/rnnbench)")
    parser.add_argument("--flags", default="", help="more flags for every command, as in '--device cuda:0'")
    args = parser.parse_args()

    global np, torch
    try:
        import numpy as np
        import torch
    except ImportError as e:
        print(f"check-training: skipped: {sys.executable}: {e}")
        return 0
    print(f"{'cell':<9} {'technique':<11} {'optimiser':<52} {'H':>4} {'B':>3} {'T':>3} {'L':>2}  {'loss':>6}  of weights  of their change  PyTorch in fp32")
    runs, bad, worst = 0, 0, 0.0
    with tempfile.TemporaryDirectory() as folder:
        text = os.path.join(folder, "text")
        characters = random_text()
        pathlib.Path(text).write_text(characters)
        for cell in CELLS:
            for size in SIZES:
                first = first_weights(args, cell, size, Text(characters, size).classes, folder)
                for optimizer in OPTIMIZERS:
                    want, loss = train(cell, optimizer, size, Text(characters, size), first, torch.double)
                    single, _ = train(cell, optimizer, size, Text(characters, size), first, torch.float)
                    theirs, _ = compare({**single, "weight_ih_l0": single["weight_ih_l0"].T}, want, first)
                    for impl in IMPLS:
                        got = trained(args, cell, impl, optimizer, size, text, folder)
                        apart, change = compare(got, want, first)
                        right = apart <= LARGEST  # false for NaN
                        runs, bad = runs + 1, bad + (not right)
                        worst = max(worst, apart) if apart == apart else apart
                        print(f"{cell:<9} {impl:<11} {optimizer:<52} {size['hidden']:>4} {size['batch']:>3} {size['steps']:>3} {size['layers']:>2}"
                              f"  {loss:6.3f}  {apart:10.1e}  {change:15.1e}  {theirs:15.1e}  {'ok' if right else 'DIFFERS'}", flush=True)
    print(f"\n{runs - bad} of {runs} trainings agree with PyTorch {torch.__version__} after {ITERATIONS} iterations:"
          f" the largest difference is {worst:.1e} of the norm of all weights, and {LARGEST:g} is allowed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
