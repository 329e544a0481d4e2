#!/usr/bin/env python3
"""Compare answers of rnnbench with PyTorch.

Runs `rnnbench export` for every cell of torch.nn and loads each file into the
module of that cell. Compares states, outputs and gradients with those of
PyTorch and its autograd for the same data. PyTorch computes in double
precision, so that differences are due to rnnbench. Errors are relative to the
largest value of PyTorch's tensor. --files checks files that exist already.

Exit status: 0 if all answers agree or PyTorch is missing, 1 if one differs,
2 if rnnbench gives no answer.
"""

import argparse
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

FORWARD, GRADIENT = 1e-5, 1e-4  # largest errors allowed

CELLS = ["rnn-tanh", "rnn-relu", "gru", "lstm"]
IMPLS = ["naive", "cudnnstyle"]
# Odd sizes and a larger one; a batch of more sequences than are distinct.
SIZES = [{"H": 17, "I": 13, "B": 5, "T": 11}, {"H": 160, "I": 96, "B": 24, "T": 40}]
LAYERS = [1, 3]
DIRECTIONS = ["reverse", "both", "alternate"]
LENGTHS = ["11+11+3+1+7", "uniform:50%"]  # for B=5 and T=11
# Networks with output classes; with one-hot symbols; with embeddings and groups; with heads.
NETWORKS = [["--point", "H=17,I=13,B=5,T=11,L=2,O=7"], ["--point", "H=17,I=13,B=5,T=11,L=2,O=7", "--onehot=true"],
            ["--point", "H=17,I=13,B=5,T=11,L=2,O=8", "--symbols=6", "--embedding=9", "--groups=2", "--weighted=true"],
            ["--point", "H=18,I=13,B=5,T=11,L=2,O=7", "--heads=3"]]
# Networks with a fully connected layer in front of the output layer.
DENSE = [["--point", "H=17,I=13,B=5,T=11,L=2,O=7", "--dense=19"], ["--point", "H=17,I=13,B=5,T=11,L=1,O=8", "--dense=3", "--groups=2", "--lengths", LENGTHS[0]]]
# LSTMs whose output is projected to fewer values.
PROJECTED = [["--point", "H=17,I=13,B=5,T=11,L=1", "--projection=16"], ["--point", "H=17,I=13,B=5,T=11,L=3,O=7", "--projection=5"]]

# Layers with shortcuts: over all modules, over all but the first, and with a remainder of layers.
BYPASSED = [["--point", "H=17,I=17,B=5,T=11,L=4", "--skip=2"], ["--point", "H=17,I=13,B=5,T=11,L=5,O=7", "--skip=2"],
            ["--point", "H=17,I=34,B=5,T=11,L=3", "--skip=1"]]

# Networks of speech: batch normalisation, row convolutions, convolutions in front, losses of transcripts, and all of them.
DEEP, FRONT, SPELLED = ["--norm=batch", "--skip=2", "--lookahead=4"], ["--conv=4x5x7/2+3x4x4"], ["--transcript=4"]
SPEECH = [["--point", "H=17,I=13,B=5,T=11,L=2", "--norm=batch"], ["--point", "H=17,I=13,B=5,T=11,L=3", "--lookahead=4"],
          ["--point", "H=17,I=17,B=5,T=11,L=4", *DEEP], ["--point", "H=17,I=21,B=5,T=11,L=1", *FRONT],
          ["--point", "H=17,I=13,B=5,T=23,L=1,O=7", *SPELLED], ["--point", "H=17,I=21,B=5,T=23,L=5,O=7", *DEEP, *FRONT, "--dense=19", *SPELLED]]


def runs():
    """Yields the flags of every export."""
    for cell in CELLS:
        for impl in IMPLS:
            flags = ["--cell", cell, "--impl", impl]
            for size in SIZES:
                for layers in LAYERS:
                    point = ",".join(f"{k}={v}" for k, v in {**size, "L": layers}.items())
                    yield [*flags, "--pass", "train", "--point", point]
            for network in NETWORKS:
                yield [*flags, "--pass", "train", *network]
            yield [*flags, "--pass", "forward", *NETWORKS[0]]
            yield from ([*flags, "--pass", p, *network] for network in DENSE for p in ("forward", "train"))
            for direction in DIRECTIONS:
                turned = ["--direction", direction]
                yield [*flags, "--pass", "train", "--point", "H=17,I=13,B=5,T=11,L=3", *turned]
                yield [*flags, "--pass", "forward", *NETWORKS[0], *turned]
                yield from ([*flags, "--pass", "train", *network, *turned] for network in NETWORKS[1:])
            for lengths in LENGTHS:
                ragged = ["--lengths", lengths]
                for direction in ["forward", *DIRECTIONS]:
                    turned = ["--direction", direction]
                    yield [*flags, "--pass", "train", "--point", "H=17,I=13,B=5,T=11,L=3", *turned, *ragged]
                    yield [*flags, "--pass", "forward", *NETWORKS[0], *turned, *ragged]
                yield from ([*flags, "--pass", "train", *network, *ragged] for network in NETWORKS[1:])
    for cell, impl in zip(CELLS, ["naive", "cudnnstyle", "persistent", "scc"]):
        for direction in ["forward", *DIRECTIONS]:
            for size in BYPASSED:
                flags = ["--cell", cell, "--impl", impl, *size, "--direction", direction]
                yield from ([*flags, "--pass", of] for of in ("train", "forward"))
                yield [*flags, "--pass", "train", "--lengths", LENGTHS[0]]
    yield from (["--cell", cell, "--impl", impl, "--pass", of, *network]
                for cell in CELLS for impl in ("cudnnstyle", "persistent") for network in SPEECH for of in ("train", "forward"))
    for impl in [*IMPLS, "persistent"]:  # it folds projections into the recurrent weights
        for direction in ["forward", *DIRECTIONS]:
            for size in PROJECTED:
                for of in "train", "forward":
                    yield ["--cell", "lstm", "--impl", impl, "--pass", of, *size, "--direction", direction]
                yield ["--cell", "lstm", "--impl", impl, "--pass", "train", *size, "--direction", direction, "--lengths", LENGTHS[0]]


def export(binary, flags, path):
    command = [binary, "export", *flags, "-o", path]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except OSError as e:
        fail(f"{shlex.join(command)}: {e.strerror}")
    if done.returncode != 0:
        fail(f"{shlex.join(command)}: exit status {done.returncode}\n{done.stdout.rstrip()}")


def fail(message):
    print(f"check-pytorch: {message}", file=sys.stderr)
    sys.exit(2)


def own_name(name):
    """The name in a file of a module's parameter: layers.2.bias_hh_l0 of layered() is bias_hh_l2."""
    parts = name.split(".")
    return parts[-1] if parts[0] != "layers" else parts[2].replace("_l0", f"_l{parts[1]}")


def layered(kind, more, m):
    """A stack of modules of one layer each, with flips, shortcuts, batch normalisation and row convolutions.

    It flips rows before and after layers that read from the last step. After each m["skip"] layers it
    adds what went into them, if that is as wide. With m["norm"], a layer reads its normalised input product:
    PyTorch's module then has the identity as input weights.
    """
    direction, skip, norm, ahead = m.get("direction", "forward"), m.get("skip", 0), m.get("norm"), m.get("lookahead", 0)
    gates = len(m["gates"]) * m["hidden"]
    ways = 2 if direction == "both" else 1

    class Layered(torch.nn.Module):
        def __init__(self):
            super().__init__()
            widths = [m["input"]] + [ways * (m.get("projection") or m["hidden"])] * (m["layers"] - 1)
            self.layers = torch.nn.ModuleList(kind(gates if norm else width, m["hidden"], bidirectional=ways == 2, **more) for width in widths)
            self.own, self.outputs = torch.nn.ParameterDict(), []
            for n, width in enumerate(widths):
                if norm:
                    self.layers[n].weight_ih_l0.requires_grad_(False)
                    self.own[f"weight_ih_l{n}"] = torch.nn.Parameter(torch.empty(gates, width))
                    self.own[f"gain_ih_l{n}"] = torch.nn.Parameter(torch.empty(gates))
                if ahead and (n + 1) % (skip or len(widths)) == 0:
                    self.own[f"weight_ahead_l{n}"] = torch.nn.Parameter(torch.empty(ahead, m["hidden"]))

        def load(self, tensor):
            """Sets parameters. tensor returns that of a name in the file."""
            one = lambda name: norm and name.startswith("layers.") and "weight_ih" in name
            self.load_state_dict({name: torch.eye(gates).double() if one(name) else tensor(own_name(name)) for name in self.state_dict()})

        def normalised(self, n, x):
            product = x @ self.own[f"weight_ih_l{n}"].T
            variance, mean = torch.var_mean(product, (0, 1), correction=0)
            return self.own[f"gain_ih_l{n}"] * (product - mean) / (variance + 1e-5).sqrt()

        def looked_ahead(self, n, x):
            if f"weight_ahead_l{n}" not in self.own:
                return x
            later = torch.nn.functional.pad(x, (0, 0, 0, 0, 0, ahead - 1))
            return sum(w * later[j : j + len(x)] for j, w in enumerate(self.own[f"weight_ahead_l{n}"]))

        def forward(self, x, states):
            single = not isinstance(states, tuple)
            last, before, self.outputs = [], x, []
            for n, layer in enumerate(self.layers):
                backwards = direction == "reverse" or direction == "alternate" and n % 2 == 0
                of = [s[ways * n : ways * (n + 1)] for s in ((states,) if single else states)]
                flip = lambda rows: flipped(rows, m) if backwards else rows
                if norm:
                    x = self.normalised(n, x)
                x, end = packed(layer, m)(flip(x), of[0] if single else tuple(of))
                x = flip(x)
                self.outputs.append(x)
                x = self.looked_ahead(n, x)
                if skip and (n + 1) % skip == 0:
                    if before.shape == x.shape and not (m["onehot"] and n < skip):
                        exists = torch.arange(len(x))[:, None] < torch.tensor(m.get("lengths", [len(x)] * x.shape[1]))
                        x = x + before * exists[..., None]
                    before = x
                last.append((end,) if single else end)
            last = tuple(torch.cat(s) for s in zip(*last))
            return x, last[0] if single else last

    return Layered()


def flipped(x, m):
    """Rows with the steps of each sequence reversed; rows past its end stay."""
    if "lengths" not in m:
        return x.flip(0)
    lengths, steps = torch.tensor(m["lengths"]), torch.arange(len(x))[:, None]
    of = torch.where(steps < lengths, lengths - 1 - steps, steps)
    return x.gather(0, of[..., None].expand_as(x))


def packed(module, m):
    """The module. If sequences have lengths, it packs them."""
    if "lengths" not in m:
        return module

    def run(x, states):
        rows = torch.nn.utils.rnn.pack_padded_sequence(x, torch.tensor(m["lengths"]), enforce_sorted=False)
        output, last = module(rows, states)
        return torch.nn.utils.rnn.pad_packed_sequence(output, total_length=len(x))[0], last

    return run


class Check:
    """Compares one file with PyTorch."""

    def __init__(self, path):
        with np.load(path) as file:
            self.got = dict(file)
        self.meta = json.loads(self.got.pop("meta").item())
        self.heads = self.meta.get("heads") or 1
        self.worst = {"forward": (0.0, "-"), "gradient": (0.0, "-")}
        self.kinks = 0  # units whose ReLU is 0 in one answer only: rounding near 0 decides, and gradients differ

    def tensor(self, name):
        t = torch.from_numpy(self.got[name])
        if name.startswith("weight_hh") and self.heads > 1:  # expand blocks to the whole matrix
            t = torch.cat([torch.block_diag(*gate.chunk(self.heads)) for gate in t.split(self.meta["hidden"])])
        return t.double() if t.is_floating_point() else t

    def blocks(self, whole):
        """The blocks of a block-diagonal matrix, as rnnbench keeps them."""
        rows = whole.shape[-1] // self.heads
        return torch.cat([band[:, i % self.heads * rows :][:, :rows] for i, band in enumerate(whole.split(rows))])

    def compare(self, kind, name, want):
        if name.startswith("grad_weight_hh"):
            want = self.blocks(want)
        got, want = self.got[name], want.detach().numpy()
        error = float("inf")  # other shape, or not a number
        if got.shape == want.shape:
            scale, difference = np.abs(want).max(), np.abs(got - want).max()
            if difference < error:
                error = difference / (scale if scale > 0 else 1)
        if error > self.worst[kind][0]:
            self.worst[kind] = (error, name)

    def module(self):
        m = self.meta
        kind, more = {
            "rnn-tanh": (torch.nn.RNN, {"nonlinearity": "tanh"}),
            "rnn-relu": (torch.nn.RNN, {"nonlinearity": "relu"}),
            "gru": (torch.nn.GRU, {}),
            "lstm": (torch.nn.LSTM, {}),
        }[m["cell"]]
        if m.get("projection"):
            more["proj_size"] = m["projection"]
        direction = m.get("direction", "forward")
        width = self.got["weight_ih_l0"].shape[1]  # what convolutions give
        if direction in ("forward", "both") and not any(m.get(k) for k in ("skip", "norm", "lookahead")):
            module = kind(width, m["hidden"], m["layers"], bidirectional=direction == "both", **more).double()
            module.load_state_dict({name: self.tensor(name) for name in module.state_dict()})
            return module
        module = layered(kind, more, {**m, "input": width}).double()
        module.load(self.tensor)
        return module

    def run(self):
        m, train = self.meta, self.meta["pass"] == "train"
        module = self.module()
        table = self.tensor("embedding").requires_grad_(train) if m.get("symbols") else None
        x = self.input(table)
        start = {s: self.tensor(f"{s}_0").requires_grad_(train) for s in m["states"]}
        leaves = {f"grad_{s}_0": state for s, state in start.items()}
        if m.get("strides"):
            x = self.convolved(x, leaves)
        else:
            x.requires_grad_(train)
        if table is not None and train:
            x.retain_grad()
        pack = lambda states: tuple(states) if len(states) > 1 else states[0]
        unpack = lambda states: states if isinstance(states, tuple) else (states,)

        run = packed(module, m) if isinstance(module, torch.nn.RNNBase) else module
        output, last = run(x, pack(list(start.values())))
        self.compare("forward", "output", output)
        for s, state in zip(m["states"], unpack(last)):
            self.compare("forward", f"{s}_n", state)
        if m.get("norm") or m.get("lookahead"):  # whose layers need all steps at once
            for n, h in enumerate(module.outputs):
                self.compare("forward", f"h_l{n}", h)
        elif "direction" not in m and "lengths" not in m:
            self.steps(module, x, start, pack, unpack)
        leaves.update({f"grad_{own_name(name)}": w for name, w in module.named_parameters() if w.requires_grad})
        if not m["onehot"] and not m.get("strides"):
            leaves["grad_input"] = x
        if table is not None:
            leaves["grad_embedding"] = table
        if m["output"]:
            exists = torch.arange(len(x))[:, None] < torch.tensor(m.get("lengths", [len(x)] * m["batch"]))
            weight, bias = (self.tensor(name).requires_grad_(train) for name in ("weight_out", "bias_out"))
            above = output
            if m.get("dense"):
                own = [self.tensor(name).requires_grad_(train) for name in ("weight_dense", "bias_dense")]
                above = (output @ own[0].T + own[1]).clamp(0, 20)
                self.compare("forward", "dense", above * exists[..., None])
                leaves.update(grad_weight_dense=own[0], grad_bias_dense=own[1])
            logits = above @ weight.T + bias
            leaves.update(grad_weight_out=weight, grad_bias_out=bias)
        if m.get("transcript"):
            goal = self.transcribed(logits)
        elif m["output"]:
            logits = logits.unflatten(-1, (m.get("groups") or 1, -1))
            loss = self.loss(logits)
            self.compare("forward", "loss", loss)
            if not train:
                self.compare("forward", "prob", logits.softmax(-1).flatten(-2) * exists[..., None])
            goal = (loss * self.tensor("loss_weight")).sum() if "loss_weight" in self.got else loss.sum() / exists.sum()
        elif train:
            goal = (output * self.tensor("grad_output")).sum()
        if train:
            goal.backward()
            for name, leaf in leaves.items():
                self.compare("gradient", name, leaf.grad)

    def convolved(self, x, leaves):
        """What the convolutions in front give of features x, as one row a step. Adds their parameters to leaves."""
        x = x.permute(1, 0, 2).unsqueeze(1)  # sequences × channels × steps × features
        for i, stride in enumerate(self.meta["strides"]):
            weight, bias = (self.tensor(f"{name}_conv{i}").requires_grad_(self.meta["pass"] == "train") for name in ("weight", "bias"))
            _, steps, features, _ = weight.shape
            more = max(0, (-(-x.shape[-1] // stride) - 1) * stride + features - x.shape[-1])
            ends = (more // 2, more - more // 2, (steps - 1) // 2, steps - 1 - (steps - 1) // 2)
            x = torch.nn.functional.conv2d(torch.nn.functional.pad(x, ends), weight.permute(0, 3, 1, 2), bias, (1, stride)).clamp(0, 20)
            self.compare("forward", f"conv{i}", x.permute(2, 0, 3, 1))
            leaves.update({f"grad_weight_conv{i}": weight, f"grad_bias_conv{i}": bias})
        return x.permute(2, 0, 3, 1).flatten(2)

    def transcribed(self, logits):
        """The mean loss of transcripts. Compares the losses and, without training, probabilities."""
        labels, counts, steps = (self.tensor(name) for name in ("transcript", "transcript_labels", "transcript_steps"))
        loss = torch.nn.functional.ctc_loss(logits.log_softmax(-1), labels, steps, counts, blank=0, reduction="none")
        self.compare("forward", "loss", loss)
        if self.meta["pass"] != "train":
            behind = (torch.arange(len(logits))[:, None] >= steps)[..., None]
            blank = torch.nn.functional.one_hot(torch.tensor(0), logits.shape[-1]).double()
            self.compare("forward", "prob", torch.where(behind, blank, logits.softmax(-1)))
        return loss.mean()

    def input(self, table):
        """The first layer's input: features, symbols one-hot, or rows of the table beside features."""
        if self.meta["onehot"]:
            return torch.nn.functional.one_hot(self.tensor("symbols"), self.meta["input"]).double()
        if table is None:
            return self.tensor("input")
        rows = torch.nn.functional.embedding(self.tensor("symbols"), table)
        return torch.cat([rows, self.tensor("input")], -1) if "input" in self.got else rows

    def loss(self, logits):
        """The loss of each step, within the target's group; 0 at steps without a target."""
        target, size = self.tensor("target"), logits.shape[-1]
        group = (target.clamp(min=0) // size)[..., None, None].expand(*target.shape, 1, size)
        within = torch.where(target < 0, -1, target % size)
        picked = logits.gather(-2, group).squeeze(-2)
        loss = torch.nn.functional.cross_entropy(picked.flatten(0, 1), within.flatten(), reduction="none", ignore_index=-1)
        return loss.reshape(target.shape)

    def steps(self, module, x, start, pack, unpack):
        """Compares the states of all layers after each step."""
        with torch.no_grad():
            states, after = pack(list(start.values())), []
            for t in range(len(x)):
                _, states = module(x[t : t + 1], states)
                after.append(unpack(states))
        for i, s in enumerate(self.meta["states"]):
            for layer in range(self.meta["layers"]):
                name, want = f"{s}_l{layer}", torch.stack([step[i][layer] for step in after])
                self.compare("forward", name, want)
                if self.meta["cell"] == "rnn-relu" and self.got[name].shape == want.shape:
                    self.kinks += int(((self.got[name] > 0) != (want.numpy() > 0)).sum())

    def ok(self):
        return self.worst["forward"][0] <= FORWARD and self.worst["gradient"][0] <= GRADIENT

    def row(self):
        m = self.meta
        size = " ".join(f"{m[k]:>4}" for k in ("hidden", "input", "batch", "steps", "layers", "output"))
        errors = "".join(f"  {error:>8.1e} {name:<18}" for error, name in self.worst.values())
        kind = m["pass"] + (" one-hot" if m["onehot"] else " embedding" if m.get("symbols") else "")
        kind += " " + m["direction"] if "direction" in m else ""
        kind += " ragged" if "lengths" in m else ""
        kind += f" skip {m['skip']}" if m.get("skip") else ""
        kind += "".join(f" {k} {m[k]}" for k in ("dense", "norm", "lookahead", "transcript") if m.get(k)) + (" conv" if m.get("strides") else "")
        kind += f" →{m['projection']}" if m.get("projection") else ""
        verdict = "ok" if self.ok() else "DIFFERS"
        if self.kinks:
            verdict += f"; on the other side of ReLU's kink: {self.kinks}"
        return f"{m['cell']:<9} {m['technique']:<10} {kind:<32} {size}{errors}  {verdict}"


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description="Compare answers of rnnbench with PyTorch.")
    parser.add_argument("rnnbench", nargs="?", default=os.environ.get("RNNBENCH", str(root / "bin" / "rnnbench")),
                        help="the program (default: $RNNBENCH, else bin/rnnbench)")
    parser.add_argument("--flags", default="", help="more flags for every export, as in '--device cuda:0'")
    parser.add_argument("--files", nargs="+", default=[], metavar="FILE.npz", help="exported files to check instead of new exports")
    args = parser.parse_args()
    if args.rnnbench.endswith(".npz"):
        parser.error(f"{args.rnnbench} is an exported file, not the program: write --files {args.rnnbench}")

    global np, torch
    try:
        import numpy as np
        import torch
    except ImportError as e:
        print(f"check-pytorch: skipped: {sys.executable}: {e}")
        return 0
    checks = []
    print(f"{'cell':<9} {'technique':<10} {'pass':<32} {'H':>4} {'I':>4} {'B':>4} {'T':>4} {'L':>4} {'O':>4}"
          f"  {'largest error, forward':<27}  {'largest error, gradients':<27}")

    def check(path):
        c = Check(path)
        c.run()
        print(c.row(), flush=True)
        checks.append(c)

    for path in args.files:
        check(path)
    if not args.files:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "answer.npz")
            for flags in runs():
                export(args.rnnbench, flags + shlex.split(args.flags), path)
                check(path)

    print()
    for cell in dict.fromkeys(c.meta["cell"] for c in checks):
        errors = {k: max(c.worst[k][0] for c in checks if c.meta["cell"] == cell) for k in ("forward", "gradient")}
        print(f"{cell:<9} forward {errors['forward']:.1e}, gradients {errors['gradient']:.1e}")
    bad = sum(not c.ok() for c in checks)
    print(f"{len(checks) - bad} of {len(checks)} answers agree with PyTorch {torch.__version__}:"
          f" forward within {FORWARD:g}, gradients within {GRADIENT:g} of the largest value of each tensor")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
