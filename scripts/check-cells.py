#!/usr/bin/env python3
"""Compare the examples in the folder cells with their papers, in PyTorch.

The equations of each paper are written out here. PyTorch runs them step by step
in double precision, and its autograd gives the gradients. They are compared
with the answers of `rnnbench export` for the same data: those of the float64
reference and of two techniques.

Exit status: 0 if all answers agree or PyTorch is missing, 1 if one differs.
"""

import pathlib
import subprocess
import sys
import tempfile

FOLDER = pathlib.Path(__file__).parent.parent
ALLOWED = {"reference": 1e-12, "naive": 1e-5, "cudnnstyle": 1e-5}  # largest errors, relative to the largest value

try:
    import numpy as np
    import torch
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(0)

sigmoid, tanh, relu = torch.sigmoid, torch.tanh, torch.relu

# The next states of a unit. x are the products of the input with their biases, in the order of the
# file. R(k, v) is the product of v with the recurrent weights of gate k, with its bias. u are the
# weights of each unit. s are the states, the output first.


def mgu(x, R, u, s):
    f = sigmoid(x[0] + R(0, s[0]))
    return [(1 - f) * s[0] + f * tanh(x[1] + R(1, f * s[0]))]


def gru_before(x, R, u, s):
    r, z = sigmoid(x[0] + R(0, s[0])), sigmoid(x[1] + R(1, s[0]))
    return [z * s[0] + (1 - z) * tanh(x[2] + R(2, r * s[0]))]


def gru_decay(x, R, u, s):
    r, z = sigmoid(x[0] + R(0, s[0])), sigmoid(x[1] + R(1, s[0]))
    n = tanh(x[2] + r * R(2, s[0]))
    return [torch.exp(-relu(x[3])) * ((1 - z) * n + z * s[0])]


def ligru(x, R, u, s):
    z = sigmoid(x[0] + R(0, s[0]))
    return [z * s[0] + (1 - z) * relu(x[1] + R(1, s[0]))]


def janet(x, R, u, s):
    gate = x[0] + R(0, s[0])
    return [sigmoid(gate) * s[0] + (1 - sigmoid(gate - 1)) * tanh(x[1] + R(1, s[0]))]


def indrnn(x, R, u, s):
    return [relu(x[0] + u * s[0])]


def rnn_crelu(x, R, u, s):
    return [torch.clamp(x[0] + R(0, s[0]), 0, 20)]


def t_rnn(x, R, u, s):
    return [sigmoid(x[0]) * s[0] + (1 - sigmoid(x[0])) * x[1]]


def gru_diag(x, R, u, s):
    uz, ur, un = u
    z, r = sigmoid(x[0] + uz * s[0]), sigmoid(x[1] + ur * s[0])
    return [(1 - z) * s[0] + z * tanh(x[2] + un * (r * s[0]))]


def lstm_diag(x, R, u, s):
    uf, uz, uo, pf, po = u
    f = sigmoid(x[0] + uf * s[0] + pf * s[1])
    c = f * s[1] + (1 - f) * tanh(x[1] + uz * s[0])
    return [sigmoid(x[2] + uo * s[0] + po * c) * tanh(c), c]


def cifg(x, R, u, s):
    f, o = sigmoid(x[0] + R(0, s[0])), sigmoid(x[2] + R(2, s[0]))
    c = f * s[1] + (1 - f) * tanh(x[1] + R(1, s[0]))
    return [o * tanh(c), c]


CELLS = {"mgu": mgu, "gru-before": gru_before, "gru-decay": gru_decay, "ligru": ligru, "janet": janet, "indrnn": indrnn, "rnn-crelu": rnn_crelu, "t-rnn": t_rnn, "gru-diag": gru_diag, "lstm-diag": lstm_diag, "cifg": cifg}


def check(step, data):
    """Returns the largest error, and where it is."""
    leaf = {k: torch.tensor(v, dtype=torch.float64, requires_grad=True) for k, v in data.items()
            if k != "meta" and not k.startswith("grad_") and k.split("_")[0] in ("input", "weight", "bias", "peephole", "h", "c") and not k.endswith("_n") and k != "h_l0" and k != "c_l0"}
    gates = lambda t: t.chunk(t.shape[0] // data["h_0"].shape[-1], 0)
    w, bw = gates(leaf["weight_ih_l0"]), gates(leaf["bias_ih_l0"])
    R = lambda k, v: v @ gates(leaf["weight_hh_l0"])[k].T + gates(leaf["bias_hh_l0"])[k]
    states, outputs = [leaf["h_0"][0]] + ([leaf["c_0"][0]] if "c_0" in leaf else []), []
    for now in leaf["input"]:
        states = step([now @ a.T + b for a, b in zip(w, bw)], R, leaf.get("peephole_l0"), states)
        outputs.append(states[0])
    outputs = torch.stack(outputs)
    outputs.backward(torch.tensor(data["grad_output"], dtype=torch.float64))
    pairs = [("output", outputs.detach())] + [("grad_" + k, t.grad) for k, t in leaf.items() if "grad_" + k in data]
    errors = [(float(np.abs(data[k] - t.numpy()).max() / np.abs(t.numpy()).max()), k) for k, t in pairs]
    return max(errors), len(pairs)


def main():
    wrong = 0
    files = sorted((FOLDER / "cells").glob("*.cell"))
    assert {f.stem for f in files} == set(CELLS), "an example has no equations here"
    with tempfile.TemporaryDirectory() as folder:
        for file in files:
            for impl, allowed in ALLOWED.items():
                out = pathlib.Path(folder) / "answer.npz"
                subprocess.run([FOLDER / "bin" / "rnnbench", "export", "--cell", file, "--pass", "train", "--impl", impl,
                                "--point", "H=17,I=13,B=5,T=11", "-f", out], check=True, stderr=subprocess.DEVNULL)
                (error, where), tensors = check(CELLS[file.stem], dict(np.load(out)))
                verdict = "ok" if error <= allowed else "DIFFERS"
                wrong += error > allowed
                print(f"{file.stem} {impl}: {verdict}, {tensors} tensors, largest error {error:.1e} of {where}")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
