"""The equations of cells that torch.nn has not, in PyTorch, as their papers write them.

A function gives the next states of a unit, the output first. x are the products of the input with their
biases, in the order of the cell's gates. R(k, v) is the product of v with the recurrent weights of gate k, with
its bias. u are the weights of each unit. s are the states.
"""

import torch

sigmoid, tanh, relu = torch.sigmoid, torch.tanh, torch.relu


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


# Those of torch.nn run by these equations where layers normalise: R.normal is the norm of a memory cell.


def rnn_tanh(x, R, u, s):
    return [tanh(x[0] + R(0, s[0]))]


def gru(x, R, u, s):
    r, z = sigmoid(x[0] + R(0, s[0])), sigmoid(x[1] + R(1, s[0]))
    return [(1 - z) * tanh(x[2] + r * R(2, s[0])) + z * s[0]]


def lstm(x, R, u, s):
    i, f, g, o = (v + R(k, s[0]) for k, v in enumerate(x))
    c = sigmoid(f) * s[1] + sigmoid(i) * tanh(g)
    return [sigmoid(o) * tanh(R.normal(c)), c]


def lstm_peephole(x, R, u, s):
    i, f, g, o = (v + R(k, s[0]) for k, v in enumerate(x))
    return peepholes(i, f, g, o, u, s[1])


def lstm_c(x, R, u, s):
    return peepholes(*x, u, s[1])


def peepholes(i, f, g, o, u, before):
    c = sigmoid(f + u[1] * before) * before + sigmoid(i + u[0] * before) * tanh(g)
    return [sigmoid(o + u[2] * c) * tanh(c), c]


def slstm(x, R, u, s):
    i, f, z, o = (v + R(k, s[0]) for k, v in enumerate(x))
    forget = s[3] + torch.nn.functional.logsigmoid(f)
    m = torch.maximum(forget, i).detach()  # scales c and n alike: the output does not depend on it
    c = torch.exp(forget - m) * s[1] + torch.exp(i - m) * tanh(z)
    n = torch.exp(forget - m) * s[2] + torch.exp(i - m)
    return [sigmoid(o) * c / n, c, n, m]


def gilr(x, R, u, s):
    g = sigmoid(x[0])
    return [g * s[0] + (1 - g) * tanh(x[1])]


def sru(x, R, u, s):
    f, r = sigmoid(x[1]), sigmoid(x[2])
    c = f * s[1] + (1 - f) * x[0]
    return [r * tanh(c) + (1 - r) * x[3], c]


def qrnn(x, R, u, s):
    f = sigmoid(x[1])
    c = f * s[1] + (1 - f) * tanh(x[0])
    return [sigmoid(x[2]) * c, c]


def ls_lstm(x, R, u, s):
    f, i, o, z = (x[k] + R(k, s[2]) for k in range(4))
    c = sigmoid(f) * s[1] + sigmoid(i) * tanh(z)
    g = sigmoid(x[4])
    return [sigmoid(o) * c, c, g * s[2] + (1 - g) * tanh(x[5])]


def mingru(x, R, u, s):
    z = sigmoid(x[0])
    return [(1 - z) * s[0] + z * torch.where(x[1] < 0, sigmoid(x[1]), x[1] + 0.5)]


def rg_lru(x, R, u, s):
    log = -8 * torch.nn.functional.softplus(u[0]) * sigmoid(x[0])
    return [torch.exp(log) * s[0] + torch.sqrt(-torch.expm1(2 * log)) * sigmoid(x[1]) * x[2]]


FILES = {
    "mgu": mgu, "gru-before": gru_before, "gru-decay": gru_decay, "ligru": ligru, "janet": janet, "indrnn": indrnn, "rnn-crelu": rnn_crelu,
    "t-rnn": t_rnn, "gru-diag": gru_diag, "lstm-diag": lstm_diag, "cifg": cifg,
}  # of the folder cells
BUILT_IN = {
    "lstm-peephole": lstm_peephole, "lstm-c": lstm_c, "gilr": gilr, "sru": sru, "qrnn": qrnn, "qrnn2": qrnn, "ls-lstm": ls_lstm,
    "mingru": mingru, "rg-lru": rg_lru, "slstm": slstm,
}
CELLS = {**FILES, **BUILT_IN, "rnn-tanh": rnn_tanh, "gru": gru, "lstm": lstm}
