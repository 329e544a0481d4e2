"""Cells whose gates read their input alone, for any array library.

The gates of a cell make, of their products x and of the peepholes, the factors a and the terms b of
state' = a∘state + b. If a cell has an output of its own, it makes that of x and the state.

f is the library: its sigmoid, tanh, relu, softplus, expm1 and sqrt. share(v) is what its scan takes for
the factor sigmoid(v), and power(v) what it takes for exp(v).
"""


def gilr(f, x, _):
    return f.share(x[0]), f.sigmoid(-x[0]) * f.tanh(x[1])


def sru(f, x, _):
    return f.share(x[1]), f.sigmoid(-x[1]) * x[0]


def sru_output(f, x, state):
    r = f.sigmoid(x[2])
    return r * f.tanh(state) + (1 - r) * x[3]


def qrnn(f, x, _):
    return f.share(x[1]), f.sigmoid(-x[1]) * f.tanh(x[0])


def qrnn_output(f, x, state):
    return f.sigmoid(x[2]) * state


def mingru(f, x, _):
    above = f.relu(x[1])
    return f.share(-x[0]), f.sigmoid(x[0]) * (above + f.sigmoid(x[1] - above))


def rg_lru(f, x, peep):
    log = -8 * f.softplus(peep[0]) * f.sigmoid(x[0])
    return f.power(log), f.sqrt(-f.expm1(2 * log)) * f.sigmoid(x[1]) * x[2]


def state_itself(_, __, state):
    return state


LINEAR = {
    "gilr": (gilr, state_itself),
    "sru": (sru, sru_output),
    "qrnn": (qrnn, qrnn_output),
    "mingru": (mingru, state_itself),
    "rg-lru": (rg_lru, state_itself),
}
