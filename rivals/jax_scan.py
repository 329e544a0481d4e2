#!/usr/bin/env python3
"""A rival for rnnbench: recurrent layers in JAX, compiled by XLA.

Layers whose gates read their own output run by lax.scan. Layers whose gates read their input
alone (gilr, sru, qrnn, mingru, rg-lru) run by lax.associative_scan.

Needs JAX and NumPy (pip install jax, or jax[cuda13] for GPUs). rnnbench starts it;
rivals/jax_scan.toml says how:

    rnnbench sweep --rival rivals/jax_scan.toml --impl jax,cudnnstyle

Knobs: unroll=N puts N steps into one iteration of a loop, serial=1 computes linear layers by
lax.scan as well. In 16 bits, products add up in fp32 and cells compute in fp32.
docs/rivals.md describes the protocol.
"""

import functools
import glob
import os
import sys
import time

sys.dont_write_bytecode = True  # no files beside this one
import protocol
from protocol import Unsupported

answers = protocol.answers()
# Otherwise JAX takes three quarters of a GPU's memory at its start.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

try:
    import jax
    import numpy as np
    from jax import lax
    from jax import numpy as jnp
except ImportError as e:
    sys.exit(protocol.serve(answers, {"hello": protocol.absent("JAX or NumPy", e)}))

# Cells: what one step makes of the input's part x and the recurrent part r of the gates, of
# the states before it, and of the peepholes. All are lists; the first state is the output.


def rnn_tanh(x, r, _, __):
    return [jnp.tanh(x[0] + r[0])]


def rnn_relu(x, r, _, __):
    return [jax.nn.relu(x[0] + r[0])]


def gru(x, r, s, _):
    reset, update = jax.nn.sigmoid(x[0] + r[0]), jax.nn.sigmoid(x[1] + r[1])
    new = jnp.tanh(x[2] + reset * r[2])
    return [(1 - update) * new + update * s[0]]


def lstm(x, r, s, _):
    i, f, o = (jax.nn.sigmoid(x[k] + r[k]) for k in (0, 1, 3))
    c = f * s[1] + i * jnp.tanh(x[2] + r[2])
    return [o * jnp.tanh(c), c]


RECURRENT = {"rnn-tanh": rnn_tanh, "rnn-relu": rnn_relu, "gru": gru, "lstm": lstm}

# Linear cells: the factors a and the terms b of state' = a∘state + b, and the output of the state.


def gilr(x, _):
    g = jax.nn.sigmoid(x[0])
    return g, (1 - g) * jnp.tanh(x[1]), lambda h: h


def sru(x, _):
    f, r = jax.nn.sigmoid(x[1]), jax.nn.sigmoid(x[2])
    return f, (1 - f) * x[0], lambda c: r * jnp.tanh(c) + (1 - r) * x[3]


def qrnn(x, _):
    f, o = jax.nn.sigmoid(x[1]), jax.nn.sigmoid(x[2])
    return f, (1 - f) * jnp.tanh(x[0]), lambda c: o * c


def mingru(x, _):
    z = jax.nn.sigmoid(x[0])
    return 1 - z, z * (jax.nn.relu(x[1]) + jax.nn.sigmoid(jnp.minimum(x[1], 0))), lambda h: h


def rg_lru(x, peep):
    log = -8 * jax.nn.softplus(peep[0]) * jax.nn.sigmoid(x[0])
    return jnp.exp(log), jnp.sqrt(-jnp.expm1(2 * log)) * jax.nn.sigmoid(x[1]) * x[2], lambda h: h


LINEAR = {"gilr": gilr, "sru": sru, "qrnn": qrnn, "mingru": mingru, "rg-lru": rg_lru}


def dot(a, b, over_a, over_b):
    """The product of a and b over these axes, added up in fp32."""
    return lax.dot_general(a, b, ((over_a, over_b), ((), ())), preferred_element_type=jnp.float32)


def product(x, w):
    """x·wᵀ in fp32 by factors in the type of x.

    w and its gradient are fp32: a loop adds up the gradients of its steps in that type.
    """

    def forward(x, w):
        narrow = w.astype(x.dtype)
        return dot(x, narrow, (x.ndim - 1,), (1,)), (x, narrow)

    def backward(kept, g):
        x, narrow = kept
        g, rows = g.astype(x.dtype), tuple(range(g.ndim - 1))
        return dot(g, narrow, (g.ndim - 1,), (0,)).astype(x.dtype), dot(g, x, rows, rows)

    f = jax.custom_vjp(lambda x, w: forward(x, w)[0])
    f.defvjp(forward, backward)
    return f(x, w)


def wide(a):
    return a.astype(jnp.float32)


def split(gates, n):
    return jnp.split(gates, n, axis=-1)


def recurrent_layer(cell, p, x, first, unroll, back):
    """A layer by lax.scan: its output at each step, and its last states."""
    n = p["weight_hh"].shape[0] // first[0].shape[-1]
    inputs = product(x, p["weight_ih"]) + p["bias_ih"]

    def step(carry, gates):
        h, rest = carry
        r = product(h, p["weight_hh"]) + p["bias_hh"]
        new = cell(split(gates, n), split(r, n), [wide(h), *rest], None)
        h = new[0].astype(x.dtype)
        return (h, new[1:]), h

    (h, rest), y = lax.scan(step, (first[0], [wide(s) for s in first[1:]]), inputs, reverse=back, unroll=unroll)
    return y, [h, *rest]


def linear_layer(cell, gates, p, x, first, serial, unroll, back):
    """A layer whose gates read its input alone, by a scan of its factors and terms."""
    parts = split(product(x, p["weight_ih"]) + p["bias_ih"], gates)
    a, b, output = cell(parts, p.get("peephole", []))
    state = wide(first[-1])
    if serial:
        def step(s, ab):
            s = ab[0] * s + ab[1]
            return s, s
        _, states = lax.scan(step, state, (a, b), reverse=back, unroll=unroll)
    else:
        start = -1 if back else 0
        b = b.at[start].add(a[start] * state)
        _, states = lax.associative_scan(lambda u, v: (u[0] * v[0], v[0] * u[1] + v[1]), (a, b), reverse=back)
    y = output(states)
    end = 0 if back else -1
    last = [y[end]] if len(first) == 1 else [y[end], states[end]]
    return y.astype(x.dtype), last


def network(point, knobs, params, x, start):
    """The outputs of the last layer and the last states of all."""
    ways, lasts = 2 if point.get("direction") == "both" else 1, []
    unroll = min(knobs.get("unroll") or 1, point["steps"])
    for layer in range(point["layers"]):
        outputs = []
        for way in range(ways):
            suffix = f"_l{layer}" + ("_reverse" if way else "")
            p = {name[: -len(suffix)]: v for name, v in params.items() if name.endswith(suffix)}
            first = [s[layer * ways + way] for s in start]
            if point["cell"] in RECURRENT:
                y, last = recurrent_layer(RECURRENT[point["cell"]], p, x, first, unroll, way == 1)
            else:
                y, last = linear_layer(LINEAR[point["cell"]], len(point["gates"]), p, x, first, knobs.get("serial"), unroll, way == 1)
            outputs.append(y)
            lasts.append(last)
        x = jnp.concatenate(outputs, axis=-1) if ways == 2 else outputs[0]
    return x, [jnp.stack([last[i] for last in lasts]) for i in range(len(start))]


def gpus():
    """How many GPUs JAX can use, found without starting it on any."""
    from importlib.metadata import distributions

    plugin = any((d.metadata["Name"] or "").startswith("jax-cuda") for d in distributions())
    return len(glob.glob("/dev/nvidia[0-9]*")) if plugin else 0


def hello(_):
    n = gpus()
    return {
        "name": "jax",
        "version": jax.__version__,
        "devices": ["cpu"] + [f"cuda:{i}" for i in range(n)],
        "knobs": [
            {"name": "unroll", "doc": "steps in one iteration of a loop", "values": [1, 8, 32]},
            {"name": "serial", "doc": "1: linear layers step by step too", "values": [0, 1]},
        ],
        "precisions": ["fp32", "bf16", "fp16"] + (["tf32"] if n else []),
        "directions": ["forward", "both"],
    }


class Rival:
    """The device, and the pass that was prepared last."""

    def open(self, m):
        kind, _, index = m["open"].partition(":")
        if kind == "cpu" and hasattr(os, "sched_setaffinity"):
            # XLA has as many threads as it may use processors, and is asked for no number.
            os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: max(1, m["threads"])])
        jax.config.update("jax_platforms", kind)
        self.device = jax.devices()[int(index or 0)]
        jax.config.update("jax_default_device", self.device)
        return {"ok": True, "device": self.device.device_kind}

    def prepare(self, m):
        point, knobs = m["prepare"]["point"], m["prepare"]["knobs"]
        self.step = self.arguments = self.answer = None
        if point["cell"] not in RECURRENT and point["cell"] not in LINEAR:
            raise Unsupported(f"this program has no {point['cell']}")
        if point["precision"] == "tf32" and self.device.platform == "cpu":
            raise Unsupported("tf32 needs a GPU")
        if knobs.get("serial") and point["cell"] in RECURRENT:
            raise Unsupported(f"{point['cell']} always runs step by step")
        self.load(point, m["prepare"]["data"])
        jax.config.update("jax_default_matmul_precision", "tensorfloat32" if point["precision"] == "tf32" else "highest")
        forward = functools.partial(network, point, knobs)
        if point["pass"] == "train":
            def run(params, x, start, dy):
                (y, last), back = jax.vjp(forward, params, x, start)
                return y, last, back((dy, [jnp.zeros_like(s) for s in last]))
        else:
            run = forward
        self.step = jax.jit(run)
        for _ in range(2):
            self.answer = self.step(*self.arguments)
        jax.block_until_ready(self.answer)
        return {"ok": True}

    def load(self, point, path):
        """Brings the inputs to the device."""
        dtype = {"bf16": jnp.bfloat16, "fp16": jnp.float16}.get(point["precision"], jnp.float32)
        with np.load(path) as file:
            a = {name: jax.device_put(jnp.asarray(file[name]).astype(dtype), self.device) for name in file.files}
        x, dy = a.pop("input"), a.pop("grad_output", None)
        start = [a.pop(f"{s}_0") for s in point["states"]]
        self.states = point["states"]
        a = {name: wide(w) for name, w in a.items()}
        self.arguments = (a, x, start) if dy is None else (a, x, start, dy)

    def run(self, m):
        begin = time.perf_counter()
        for _ in range(m["run"]):
            self.answer = self.step(*self.arguments)
        jax.block_until_ready(self.answer)
        return {"wall_s": time.perf_counter() - begin}

    def read(self, m):
        y, last, *gradients = self.answer
        arrays = {"output": y, **{f"{s}_n": v for s, v in zip(self.states, last)}}
        for params, x, start in gradients:
            arrays["grad_input"] = x
            arrays.update((f"grad_{name}", v) for name, v in params.items())
            arrays.update((f"grad_{s}_0", v) for s, v in zip(self.states, start))
        np.savez(m["read"], **{name: np.asarray(v.astype(jnp.float32)) for name, v in arrays.items()})
        return {"ok": True}


if __name__ == "__main__":
    rival = Rival()
    protocol.serve(answers, {"hello": hello, "open": rival.open, "prepare": rival.prepare, "run": rival.run, "read": rival.read})
