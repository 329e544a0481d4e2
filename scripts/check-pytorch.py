#!/usr/bin/env python3
"""Compare answers of rnnbench with PyTorch.

Runs `rnnbench export` for every cell of torch.nn, loads each file into the module of that cell, and compares
states, outputs and gradients with those of PyTorch and its autograd for the same data. What torch.nn has not runs
layer by layer: shortcuts, row convolutions, norms, and other cells by their equations in written_cells.py.
PyTorch computes in double precision, so that differences are due to rnnbench. Errors are relative to the largest
value of PyTorch's tensor. --files checks files that exist already.

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
REFERENCE = 1e-12  # of the float64 reference
EPSILON = {"fp32": 0, "tf32": 2**-11, "bf16": 2**-8, "fp16": 2**-11, "int8": 1 / 254}  # of rounded factors of products

CELLS = ["rnn-tanh", "rnn-relu", "gru", "lstm"]
RECTIFIED = ["rnn-relu", "rnn-crelu", "indrnn"]  # whose output is a ReLU's
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

# Other cells: those of the folder cells, and those that are built in.
OTHERS = [["--point", "H=17,I=13,B=5,T=11"], ["--point", "H=18,I=13,B=5,T=11,L=3,O=7", "--direction", "alternate", "--lengths", LENGTHS[0]]]
NORMED = ["--point", "H=17,I=13,B=5,T=11,L=2,O=7", "--norm=layer"]


def runs(cells):
    """Yields the flags of every export. cells are files of cells by name."""
    for cell in (*cells.values(), *written_cells.BUILT_IN):
        for impl in ["reference", *IMPLS]:
            yield from (["--cell", cell, "--impl", impl, "--pass", "train", *network] for network in OTHERS)
    for cell in "rnn-tanh", "gru", "lstm":
        yield from (["--cell", cell, "--impl", impl, "--pass", of, *NORMED] for impl in ["reference", *IMPLS] for of in ("train", "forward"))
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


class Layers:
    """Layers one by one, each way for itself: what torch.nn has not. check has their data.

    It flips rows before and after layers that read from the last step. After each m["skip"] layers it
    adds what went into them, if that is as wide. With batch normalisation, a module of torch.nn reads its
    normalised input product, by the identity. Other cells, and layer normalisation, run step by step by their
    equations in written_cells.py.
    """

    def __init__(self, check):
        self.check, self.m = check, check.meta
        self.unprojected = []
        self.outputs = []  # by layer and way

    def __call__(self, x, states):
        m, last, before = self.m, [], x
        ways = 2 if m.get("direction") == "both" else 1
        skip, ahead = m.get("skip", 0), m.get("lookahead", 0)
        for n in range(m["layers"]):
            each = []
            for k in range(ways):
                backwards = k == 1 or m.get("direction") == "reverse" or m.get("direction") == "alternate" and n % 2 == 0
                flip = lambda rows: flipped(rows, m) if backwards else rows
                of = [s[ways * n + k] for s in states]
                h, end = self.way(f"_l{n}{'_reverse' if k else ''}", flip(x), of, flip)
                each.append(flip(h))
                last.append(end)
            self.outputs += each
            x = torch.cat(each, 2)
            if ahead and (n + 1) % (skip or m["layers"]) == 0:
                later = torch.nn.functional.pad(x, (0, 0, 0, 0, 0, ahead - 1))
                x = sum(w * later[j : j + len(x)] for j, w in enumerate(self.check.leaf(f"weight_ahead_l{n}")))
            if skip and (n + 1) % skip == 0:
                # No shortcut passes by the first module over a one-hot input or convolutions.
                if before.shape == x.shape and not ((m["onehot"] or m.get("strides")) and n < skip):
                    x = x + before * self.check.exists(x)
                before = x
        return x, [torch.stack(s) for s in zip(*last)]

    def way(self, end, x, states, flip):
        """The outputs of one layer that reads rows x in their order, and its last states."""
        m, leaf, norm = self.m, self.check.leaf, self.m.get("norm")
        w = leaf("weight_ih" + end)
        if m["cell"] in CELLS and norm != "layer":
            names, weight_ih = ["weight_hh", "bias_ih", "bias_hh"] + ["weight_hr"] * bool(m.get("projection")), w
            if norm:
                x, weight_ih = leaf("gain_ih" + end) * normalised(x @ w.T, (0, 1)), torch.eye(len(w)).double()
            kind, more = torch_kind(m)
            module = kind(weight_ih.shape[1], m["hidden"], **more).double()
            for name, value in [("weight_ih", weight_ih)] + [(name, leaf(name + end)) for name in names]:
                delattr(module, name + "_l0")
                setattr(module, name + "_l0", value)
            module._flat_weights = [getattr(module, name) for name in module._flat_weights_names]
            output, last = packed(module, m)(x, pack([s[None] for s in states]))
            return output, [s[0] for s in unpack(last)]
        before = torch.cat([torch.zeros_like(x[:1]), x[:-1]])
        products = torch.cat([x, before], 2)[..., : w.shape[1]] @ w.T  # a window has columns for the step before
        if norm == "batch":
            products = leaf("gain_ih" + end) * normalised(products, (0, 1))
        elif norm:
            products = leaf("gain_ih" + end) * normalised(products, -1)
        products = (products + leaf("bias_ih" + end)).unflatten(-1, (len(m["gates"]), -1)).unbind(-2)
        step, R, u = written_cells.CELLS[m["cell"]], Recurrent(self.check, end), leaf("peephole" + end) if m.get("peepholes") else None
        outputs, wide = [], []
        lengths = torch.tensor(m.get("lengths", [len(x)] * m["batch"]))
        for t in range(len(x)):
            alive = (t < lengths)[:, None]
            R.at(states)
            after = step([v[t] for v in products], R, u, states)
            if m.get("projection"):
                wide.append(after[0] * alive)
                after[0] = after[0] @ leaf("weight_hr" + end).T
            outputs.append(after[0] * alive)
            states = [torch.where(alive, new, old) for new, old in zip(after, states)]
        if wide:
            self.unprojected.append(("unprojected" + end, flip(torch.stack(wide))))
        return torch.stack(outputs), states


class Recurrent:
    """The recurrent products of a step: R(k, v) is that of gate k and v. With layer normalisation, those of all
    gates with the state are normalised together, and normal(c) is the memory cell as the output reads it."""

    def __init__(self, check, end):
        self.m, h = check.meta, check.meta["hidden"]
        there = "weight_hh" + end in check.got
        self.w, self.b = (check.leaf(name + end) if there else None for name in ("weight_hh", "bias_hh"))
        self.gain = check.leaf("gain_hh" + end) if self.m.get("norm") == "layer" else None
        self.gates = len(self.w) // h if there else 0

    def at(self, states):
        if self.gain is not None:
            rows = len(self.w)
            products = self.gain[:rows] * normalised(states[0] @ self.w.T, -1) + self.b[:rows]
            self.joint = products.chunk(self.gates, 1)

    def __call__(self, k, v):
        if self.gain is not None:
            return self.joint[k]
        return v @ self.w.chunk(self.gates)[k].T + self.b.chunk(self.gates)[k]

    def normal(self, c):
        if self.gain is None:
            return c
        rows = len(self.w)
        return self.gain[rows:] * normalised(c, -1) + self.b[rows:]


def normalised(v, over):
    variance, mean = torch.var_mean(v, over, unbiased=False, keepdim=True)
    return (v - mean) / (variance + 1e-5).sqrt()


def torch_kind(m):
    """The module of torch.nn that has the cell, and its arguments."""
    more = {"proj_size": m["projection"]} if m.get("projection") else {}
    if m["cell"].startswith("rnn-"):
        return torch.nn.RNN, {"nonlinearity": m["cell"][4:], **more}
    return getattr(torch.nn, m["cell"].upper()), more


def pack(states):
    return tuple(states) if len(states) > 1 else states[0]


def unpack(states):
    return states if isinstance(states, tuple) else (states,)


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
        self.meta["cell"] = self.meta["cell"].split("@")[0]  # of a file, a hash follows
        self.heads = self.meta.get("heads") or 1
        self.worst = {"forward": (0.0, "-"), "gradient": (0.0, "-")}
        self.kinks = 0  # units whose ReLU is 0 in one answer only: rounding near 0 decides, and gradients differ
        self.train = self.meta["pass"] == "train"
        self.leaves = {}  # what has a gradient, by name

    def tensor(self, name):
        t = torch.from_numpy(self.got[name])
        if name.startswith("weight_hh") and self.heads > 1:  # expand blocks to the whole matrix
            t = torch.cat([torch.block_diag(*gate.chunk(self.heads)) for gate in t.split(self.meta["hidden"])])
        return t.double() if t.is_floating_point() else t

    def leaf(self, name):
        """A tensor of which training compares the gradient."""
        if name not in self.leaves:
            self.leaves[name] = self.tensor(name).requires_grad_(self.train)
        return self.leaves[name]

    def exists(self, x):
        """Whether each sequence has each step, for rows x."""
        return (torch.arange(len(x))[:, None] < torch.tensor(self.meta.get("lengths", [len(x)] * self.meta["batch"])))[..., None]

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
            if name.startswith("h_l") and self.meta["cell"] in RECTIFIED:
                self.kinks += int(((got > 0) != (want > 0)).sum())
        if error > self.worst[kind][0]:
            self.worst[kind] = (error, name)

    def module(self):
        """The module of torch.nn that has all layers, with their parameters; None if there is none."""
        m = self.meta
        if m["cell"] not in CELLS or m.get("direction", "forward") not in ("forward", "both") or any(m.get(k) for k in ("skip", "norm", "lookahead")):
            return None
        kind, more = torch_kind(m)
        width = self.got["weight_ih_l0"].shape[1]  # what convolutions give
        module = kind(width, m["hidden"], m["layers"], bidirectional="direction" in m, **more).double()
        module.load_state_dict({name: self.tensor(name) for name in module.state_dict()})
        self.leaves.update(module.named_parameters())
        return module

    def run(self):
        m = self.meta
        x = self.convolved(self.input()) if m.get("strides") else self.input()
        if self.train and not m["onehot"] and not m.get("strides"):
            if x.requires_grad:  # rows of an embedding
                x.retain_grad()
            self.leaves["input"] = x.requires_grad_()
        start = [self.leaf(f"{s}_0") for s in m["states"]]
        module = self.module()
        if module is None:
            layers = Layers(self)
            output, last = layers(x, start)
            names = [f"{m['states'][0]}_l{n}{way}" for n in range(m["layers"]) for way in [""] + ["_reverse"] * (m.get("direction") == "both")]
            for name, want in [*zip(names, layers.outputs), *layers.unprojected]:
                self.compare("forward", name, want)
        else:
            output, last = packed(module, m)(x, pack(start))
            if "direction" not in m and "lengths" not in m:
                self.steps(module, x, start)
        self.compare("forward", "output", output)
        for s, state in zip(m["states"], unpack(last) if module else last):
            self.compare("forward", f"{s}_n", state)
        goal = self.head(output) if m["output"] else (output * self.tensor("grad_output")).sum() if self.train else None
        if self.train:
            goal.backward()
            for name, leaf in self.leaves.items():
                self.compare("gradient", f"grad_{name}", torch.zeros_like(leaf) if leaf.grad is None else leaf.grad)
        missing = [name for name in self.got if name.startswith("grad_") and name != "grad_output" and name[5:] not in self.leaves]
        assert not missing, f"no gradient is compared with {missing}"

    def head(self, output):
        """The loss of the output layer. Compares those of steps or sequences, and what comes before."""
        m, exists = self.meta, self.exists(output)
        if m.get("dense"):
            output = self.clipped(output @ self.leaf("weight_dense").T + self.leaf("bias_dense"), self.tensor("dense"))
            self.compare("forward", "dense", output * exists)
        logits = output @ self.leaf("weight_out").T + self.leaf("bias_out")
        if m.get("transcript"):
            return self.transcribed(logits)
        logits = logits.unflatten(-1, (m.get("groups") or 1, -1))
        loss = self.loss(logits)
        self.compare("forward", "loss", loss)
        if not self.train:
            self.compare("forward", "prob", logits.softmax(-1).flatten(-2) * exists)
        return (loss * self.tensor("loss_weight")).sum() if "loss_weight" in self.got else loss.sum() / exists.sum()

    def clipped(self, sums, answer):
        """The ReLU of sums, clipped at 20. A gradient passes where the answer lies in between: rounding may decide
        on which side of 0 or 20 a sum is. One that lies there otherwise is wrong by its value."""
        return torch.where((answer > 0) & (answer < 20), sums, sums.clamp(0, 20).detach())

    def convolved(self, x):
        """What the convolutions in front give of features x, as one row a step."""
        x = x.permute(1, 0, 2).unsqueeze(1)  # sequences × channels × steps × features
        for i, stride in enumerate(self.meta["strides"]):
            weight, bias = self.leaf(f"weight_conv{i}"), self.leaf(f"bias_conv{i}")
            _, steps, features, _ = weight.shape
            more = max(0, (-(-x.shape[-1] // stride) - 1) * stride + features - x.shape[-1])
            ends = (more // 2, more - more // 2, (steps - 1) // 2, steps - 1 - (steps - 1) // 2)
            x = torch.nn.functional.conv2d(torch.nn.functional.pad(x, ends), weight.permute(0, 3, 1, 2), bias, (1, stride))
            x = self.clipped(x, self.tensor(f"conv{i}").permute(1, 3, 0, 2))
            self.compare("forward", f"conv{i}", x.permute(2, 0, 3, 1))
        return x.permute(2, 0, 3, 1).flatten(2)

    def transcribed(self, logits):
        """The mean loss of transcripts. Compares the losses and, without training, probabilities."""
        labels, counts, steps = (self.tensor(name) for name in ("transcript", "transcript_labels", "transcript_steps"))
        loss = torch.nn.functional.ctc_loss(logits.log_softmax(-1), labels, steps, counts, blank=0, reduction="none")
        self.compare("forward", "loss", loss)
        if not self.train:
            behind = (torch.arange(len(logits))[:, None] >= steps)[..., None]
            blank = torch.nn.functional.one_hot(torch.tensor(0), logits.shape[-1]).double()
            self.compare("forward", "prob", torch.where(behind, blank, logits.softmax(-1)))
        return loss.mean()

    def input(self):
        """The first layer's input: features, symbols one-hot, or rows of the table beside features."""
        if self.meta["onehot"]:
            return torch.nn.functional.one_hot(self.tensor("symbols"), self.meta["input"]).double()
        if not self.meta.get("symbols"):
            return self.tensor("input")
        rows = torch.nn.functional.embedding(self.tensor("symbols"), self.leaf("embedding"))
        return torch.cat([rows, self.tensor("input")], -1) if "input" in self.got else rows

    def loss(self, logits):
        """The loss of each step, within the target's group; 0 at steps without a target."""
        target, size = self.tensor("target"), logits.shape[-1]
        group = (target.clamp(min=0) // size)[..., None, None].expand(*target.shape, 1, size)
        within = torch.where(target < 0, -1, target % size)
        picked = logits.gather(-2, group).squeeze(-2)
        loss = torch.nn.functional.cross_entropy(picked.flatten(0, 1), within.flatten(), reduction="none", ignore_index=-1)
        return loss.reshape(target.shape)

    def steps(self, module, x, start):
        """Compares the states of all layers after each step."""
        with torch.no_grad():
            states, after = pack(start), []
            for t in range(len(x)):
                _, states = module(x[t : t + 1], states)
                after.append(unpack(states))
        for i, s in enumerate(self.meta["states"]):
            for layer in range(self.meta["layers"]):
                self.compare("forward", f"{s}_l{layer}", torch.stack([step[i][layer] for step in after]))

    def ok(self):
        return all(self.worst[kind][0] <= bound for kind, bound in self.allowed().items())

    def allowed(self):
        """The largest errors allowed. Where factors of products have 16 bits, rounding adds up as rnn/oracle's Tolerance says."""
        m = self.meta
        if m["technique"] == "reference":
            return {"forward": REFERENCE, "gradient": REFERENCE}
        more = 8 * EPSILON[m["precision"]] * ((3 if m.get("projection") else 2) * m["layers"]) ** 0.5
        return {"forward": FORWARD + more, "gradient": GRADIENT + 2 * more}

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
        return f"{m['cell']:<13} {m['technique']:<10} {kind:<32} {size}{errors}  {verdict}"


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

    global np, torch, written_cells
    try:
        import numpy as np
        import torch
        import written_cells
    except ImportError as e:
        print(f"check-pytorch: skipped: {sys.executable}: {e}")
        return 0
    cells = {f.stem: str(f) for f in sorted((root / "cells").glob("*.cell"))}
    if cells.keys() != written_cells.FILES.keys():
        fail(f"written_cells.py has not the equations of the files in cells, which are {', '.join(cells)}")
    checks = []
    print(f"{'cell':<13} {'technique':<10} {'pass':<32} {'H':>4} {'I':>4} {'B':>4} {'T':>4} {'L':>4} {'O':>4}"
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
            for flags in runs(cells):
                export(args.rnnbench, flags + shlex.split(args.flags), path)
                check(path)

    print()
    for cell in dict.fromkeys(c.meta["cell"] for c in checks):
        errors = {k: max(c.worst[k][0] for c in checks if c.meta["cell"] == cell) for k in ("forward", "gradient")}
        print(f"{cell:<13} forward {errors['forward']:.1e}, gradients {errors['gradient']:.1e}")
    bad = sum(not c.ok() for c in checks)
    print(f"{len(checks) - bad} of {len(checks)} answers agree with PyTorch {torch.__version__}:"
          f" forward within {FORWARD:g}, gradients within {GRADIENT:g} of the largest value of each tensor."
          f" The float64 reference must agree within {REFERENCE:g}, and 16 bits may round by more.")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
