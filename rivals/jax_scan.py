#!/usr/bin/env python3
"""A rival for rnnbench: recurrent layers in JAX, compiled by XLA.

Layers whose gates read their own output run by lax.scan. Layers whose gates read their input
alone (gilr, sru, qrnn, mingru, rg-lru) run by lax.associative_scan.

Needs JAX and NumPy (pip install jax, or jax[cuda13] for GPUs). rnnbench starts it;
rivals/jax_scan.toml says how:

    rnnbench sweep --rival rivals/jax_scan.toml --impl jax,cudnnstyle

Knobs: unroll=N puts N steps into one iteration of a loop, serial=1 computes linear layers by
lax.scan as well. alone times a part of a linear layer, as in scans.py. In 16 bits, products add up in fp32 and cells compute in fp32.
docs/rivals.md describes the protocol.
"""

import functools
import glob
import os
import sys
import time
import types

sys.dont_write_bytecode = True  # no files beside this one
import protocol
from linear_cells import LINEAR
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

# What linear cells are made of.
ARRAYS = types.SimpleNamespace(
    sigmoid=jax.nn.sigmoid, tanh=jnp.tanh, relu=jax.nn.relu, softplus=jax.nn.softplus, expm1=jnp.expm1, sqrt=jnp.sqrt,
    share=jax.nn.sigmoid, power=jnp.exp)


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


def linear_gates(cell, inputs, peep, state, start):
    """The factors and terms of a scan. The term of the step start holds the first state."""
    a, b = LINEAR[cell][0](ARRAYS, inputs, peep)
    return a, b.at[start].add(a[start] * state)


def scanned(a, b, knobs, unroll=1, back=False):
    """The states of all steps."""
    if knobs.get("serial"):
        def step(s, ab):
            s = ab[0] * s + ab[1]
            return s, s
        return lax.scan(step, jnp.zeros_like(b[0]), (a, b), reverse=back, unroll=unroll)[1]
    return lax.associative_scan(lambda u, v: (u[0] * v[0], v[0] * u[1] + v[1]), (a, b), reverse=back)[1]


def linear_layer(point, knobs, p, x, first, unroll, back):
    """A layer whose gates read its input alone, by a scan of its factors and terms."""
    parts = split(product(x, p["weight_ih"]) + p["bias_ih"], len(point["gates"]))
    a, b = linear_gates(point["cell"], parts, p.get("peephole"), wide(first[-1]), -1 if back else 0)
    states = scanned(a, b, knobs, unroll, back)
    y = LINEAR[point["cell"]][1](ARRAYS, parts, states)
    end = 0 if back else -1
    last = [y[end]] if len(first) == 1 else [y[end], states[end]]
    return y.astype(x.dtype), last


class Part:
    """A pass of one linear layer of which a part is timed, as in scans.py. The rest is computed before, or by answer."""

    def __init__(self, point, knobs, arguments):
        params, x, start, *dy = arguments
        self.alone, self.train, n = knobs["alone"], bool(dy), len(point["gates"])
        self.start, self.peep, self.dy = start, params.get("peephole_l0"), dy[0] if dy else None
        state = wide(start[-1][0])

        def inputs(w, bias, x):
            return product(x, w) + bias

        def gates(p, peep, state):
            return linear_gates(point["cell"], split(p, n), peep, state, 0)

        def scan(a, b):
            return scanned(a, b, knobs)

        def output(p, states):
            return LINEAR[point["cell"]][1](ARRAYS, split(p, n), states)

        def recurrence(p, peep, state):
            states = scan(*gates(p, peep, state))
            return output(p, states), states

        # With training, each part comes with its gradient.
        kept = lambda f: jax.jit(lambda *given: jax.vjp(f, *given) if self.train else (f(*given), None))
        self.output = kept(output)
        self.p, self.to_inputs = kept(inputs)(params["weight_ih_l0"], params["bias_ih_l0"], x)
        (a, b), self.to_gates = kept(gates)(self.p, self.peep, state)
        f, given = (scan, (a, b)) if self.alone > 2 else (recurrence, (self.p, self.peep, state))
        self.step, self.arguments = kept(f), given
        if self.alone in (2, 4):
            self.made, back = self.step(*given)
            toward = self.beyond(self.made)[0] if self.alone == 4 else (self.dy, jnp.zeros_like(self.made[1]))
            self.step, self.arguments = jax.jit(lambda back, g: back(g)), (back, toward)

    def beyond(self, states):
        """The gradients of the states of a scan alone and of the products, and the output."""
        y, back = self.output(self.p, states)
        to_p, to_states = back(self.dy) if self.train else (None, None)
        return to_states, to_p, y

    def answer(self, answer):
        """The answer of the whole pass, given that of the part."""
        made, back = (self.made, None) if self.alone in (2, 4) else answer
        if self.alone > 2:
            to_states, to_p, y = self.beyond(made)
            states = made
        else:
            y, states = made
        last = [y[-1][None]] if len(self.start) == 1 else [y[-1][None], states[-1][None]]
        if not self.train:
            return y, last
        if self.alone > 2:
            more, peep, state = self.to_gates(answer if self.alone == 4 else back(to_states))
            to_p = to_p + more
        else:
            to_p, peep, state = answer if self.alone == 2 else back((self.dy, jnp.zeros_like(states)))
        w, bias, x = self.to_inputs(to_p)
        params = {"weight_ih_l0": w, "bias_ih_l0": bias} | ({} if self.peep is None else {"peephole_l0": peep})
        return y, last, (params, x, [*map(jnp.zeros_like, self.start[:-1]), state[None]])


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
                y, last = linear_layer(point, knobs, p, x, first, unroll, way == 1)
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
            {"name": "alone", "doc": "what of a linear layer is timed", "values": [0, 1, 2, 3, 4], "internal": True},
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
        self.step = self.arguments = self.answer = self.part = None
        if point["cell"] not in RECURRENT and point["cell"] not in LINEAR:
            raise Unsupported(f"this program has no {point['cell']}")
        if point["precision"] == "tf32" and self.device.platform == "cpu":
            raise Unsupported("tf32 needs a GPU")
        if knobs.get("serial") and point["cell"] in RECURRENT:
            raise Unsupported(f"{point['cell']} always runs step by step")
        if alone := knobs.get("alone"):
            if point["cell"] in RECURRENT or point["layers"] > 1 or point["precision"] != "fp32" or "direction" in point:
                raise Unsupported("alone needs one linear layer in fp32 that reads from the first step")
            if alone in (2, 4) and point["pass"] != "train":
                raise Unsupported(f"alone={alone} needs training")
        self.load(point, m["prepare"]["data"])
        jax.config.update("jax_default_matmul_precision", "tensorfloat32" if point["precision"] == "tf32" else "highest")
        self.part = Part(point, knobs, self.arguments) if alone else None
        forward = functools.partial(network, point, knobs)
        if alone:
            self.arguments = self.part.arguments
        elif point["pass"] == "train":
            def run(params, x, start, dy):
                (y, last), back = jax.vjp(forward, params, x, start)
                return y, last, back((dy, [jnp.zeros_like(s) for s in last]))
        else:
            run = forward
        self.step = self.part.step if alone else jax.jit(run)
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
        y, last, *gradients = self.part.answer(self.answer) if self.part else self.answer
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
