#!/usr/bin/env python3
"""A rival for rnnbench: the operators LSTM, GRU and RNN of ONNX Runtime on the processor.

Needs ONNX Runtime's library, and of Python nothing else. It is looked for in $ONNXRUNTIME_LIBRARY,
in the Python package onnxruntime, if that exports the C API, and in the npm package onnxruntime-node
below node_modules here, in a folder above, or in $NODE_PATH. rnnbench starts it; rivals/onnxruntime.toml says how:

    npm install --ignore-scripts onnxruntime-node
    rnnbench sweep --rival rivals/onnxruntime.toml --impl onnxruntime,cudnnstyle

A point becomes a model of one operator a layer (onnx_model.py). A pass is one call of RunWithBinding
in ONNX Runtime's C API, whose inputs and outputs are bound to memory before. Where calls are timed, a
call copies its input there. Outputs are read where they lie, which takes no time. Between the layers of a stack, values are transposed where both
directions are concatenated. The last layer's are not: that is not timed.

The session's options are the fastest that were found (1.30, Zen 3, one thread): all graph
optimisations, operators in sequence, spinning threads, packed weights, no memory pattern, no arena.
Without the arena a call of lstm 32 takes 5.8 µs, with it 7.1; larger layers take as long either way.
Run in place of RunWithBinding takes 1.4 µs more. A call of a model that copies 64 values (Identity)
takes 3.8 µs from here. Calling a function of the library from Python is 0.3 µs of them, the clock 0.1.

In int8 weights have 8 bits and a scale a unit of a gate, as ONNX Runtime's dynamic quantisation writes
them. Its operator DynamicQuantizeLSTM rounds inputs and states in each step.

Knobs: single=1 computes with one thread.
docs/rivals.md describes the protocol.
"""

import ctypes
import gc
import glob
import importlib.util
import itertools
import math
import os
import sys
import time

sys.dont_write_bytecode = True  # no files beside this one
import npz
import onnx_model
import protocol
from protocol import Unsupported

answers = protocol.answers()

Pointer, Size, Int, Text = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_char_p

# Functions of the C API: the place in its table, which only grows, and the types of the arguments.
FUNCTIONS = {
    "CreateEnv": (3, Int, Text, Pointer),
    "CreateSessionFromArray": (8, Pointer, Text, Size, Pointer, Pointer),
    "CreateSessionOptions": (10, Pointer),
    "SetSessionExecutionMode": (13, Pointer, Int),
    "DisableMemPattern": (17, Pointer),
    "DisableCpuMemArena": (19, Pointer),
    "SetSessionGraphOptimizationLevel": (23, Pointer, Int),
    "SetIntraOpNumThreads": (24, Pointer, Int),
    "SetInterOpNumThreads": (25, Pointer, Int),
    "CreateRunOptions": (39, Pointer),
    "CreateTensorWithDataAsOrtValue": (49, Pointer, Pointer, Size, Pointer, Size, Int, Pointer),
    "CreateCpuMemoryInfo": (69, Int, Int, Pointer),
    "ReleaseSession": (95, Pointer),
    "ReleaseValue": (96, Pointer),
    "ReleaseSessionOptions": (100, Pointer),
    "AddSessionConfigEntry": (130, Pointer, Text, Text),
    "RunWithBinding": (133, Pointer, Pointer, Pointer),
    "CreateIoBinding": (134, Pointer, Pointer),
    "ReleaseIoBinding": (135, Pointer),
    "BindInput": (136, Pointer, Text, Pointer),
    "BindOutput": (137, Pointer, Text, Pointer),
}
API_VERSION = 8  # the first whose table has all of them
ERRORS_ONLY, SEQUENTIAL, ALL_OPTIMISATIONS = 3, 0, 99
MOST_BYTES = 2**31 - 2**20  # of a model: what Protocol Buffers allow, but for names


def places():
    """Yields the files that may be ONNX Runtime's library."""
    if named := os.environ.get("ONNXRUNTIME_LIBRARY"):
        yield named
        return
    package = importlib.util.find_spec("onnxruntime")
    if package and package.origin:
        capi = os.path.join(os.path.dirname(package.origin), "capi")
        for name in "libonnxruntime.so*", "libonnxruntime*.dylib", "onnxruntime_pybind11_state*.so":
            yield from sorted(glob.glob(os.path.join(capi, name)))
    here, machine = os.getcwd(), {"x86_64": "x64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
    above = [here]
    while os.path.dirname(above[-1]) != above[-1]:
        above.append(os.path.dirname(above[-1]))
    folders = [os.path.join(f, "node_modules") for f in above] + [f for f in os.environ.get("NODE_PATH", "").split(os.pathsep) if f]
    for folder in folders:
        of = os.path.join(folder, "onnxruntime-node", "bin", "napi-v*", sys.platform, machine)
        yield from sorted(glob.glob(os.path.join(of, "libonnxruntime.so*")) + glob.glob(os.path.join(of, "libonnxruntime.*.dylib")))


class Api:
    """The functions of ONNX Runtime's C API. Each raises an exception if it fails."""

    def __init__(self):
        tried = []
        for path in places():
            try:
                base = ctypes.CDLL(path).OrtGetApiBase
                break
            except (OSError, AttributeError) as e:
                tried.append(str(e))
        else:
            raise OSError("; ".join(tried) or "npm install --ignore-scripts onnxruntime-node, or name the library in ONNXRUNTIME_LIBRARY")
        base.restype = ctypes.POINTER(Pointer)
        get, version = base()[:2]
        self.version = ctypes.CFUNCTYPE(Text)(version)().decode()
        table = ctypes.cast(ctypes.CFUNCTYPE(Pointer, ctypes.c_uint32)(get)(API_VERSION), ctypes.POINTER(Pointer))
        if not table:
            raise OSError(f"version {self.version} at {path} is too old")
        self.message = ctypes.CFUNCTYPE(Text, Pointer)(table[2])
        # PYFUNCTYPE does not let go of Python's lock meanwhile, which takes time: there is one thread.
        self.raw = {name: ctypes.PYFUNCTYPE(Pointer, *types)(table[place]) for name, (place, *types) in FUNCTIONS.items()}
        self.info = self.new("CreateCpuMemoryInfo", 0, 0)
        self.env = self.new("CreateEnv", ERRORS_ONLY, b"rnnbench")
        self.run_options = self.new("CreateRunOptions")

    def call(self, name, *args):
        self.check(name, self.raw[name](*args))

    def check(self, name, status):
        if status:
            raise RuntimeError(f"{name}: {self.message(status).decode(errors='replace')}")

    def new(self, name, *args):
        """Calls a function whose last argument is where a pointer goes, and returns that pointer."""
        out = Pointer()
        self.call(name, *args, ctypes.byref(out))
        return out.value

    def release(self, kind, pointers):
        for p in pointers:
            self.raw["Release" + kind](p)


class Memory:
    """Bytes at an address that is a multiple of 64."""

    def __init__(self, data):
        kept = ctypes.create_string_buffer(len(data) + 64)
        skip = -ctypes.addressof(kept) % 64
        self.at = ctypes.addressof(kept) + skip
        self.bytes = memoryview(kept).cast("B")[skip : skip + len(data)]
        self.bytes[:] = data


class Layers:
    """A point as a session, with the memory that it reads and writes. States have two places: a call
    reads those of one place and writes those of the other."""

    def __init__(self, api, point, arrays, threads):
        self.api, self.point, self.values, self.bindings, self.session = api, point, [], [], None
        model, self.inputs, self.outputs = onnx_model.model(point, arrays)
        if len(model) > MOST_BYTES:
            raise Unsupported("its weights are larger than a model may be: 2 GiB")
        options = api.new("CreateSessionOptions")
        api.call("SetSessionExecutionMode", options, SEQUENTIAL)
        api.call("SetSessionGraphOptimizationLevel", options, ALL_OPTIMISATIONS)
        api.call("SetIntraOpNumThreads", options, threads)
        api.call("SetInterOpNumThreads", options, 1)
        api.call("AddSessionConfigEntry", options, b"session.intra_op.allow_spinning", b"1")
        api.call("DisableMemPattern", options)
        api.call("DisableCpuMemArena", options)
        self.session = api.new("CreateSessionFromArray", api.env, model, len(model), options)
        api.release("SessionOptions", [options])
        self.input, self.output = (Memory(bytes(4 * math.prod(shape))) for shape in (self.inputs["input"], self.outputs["output"]))
        self.lengths = Memory(b"".join(n.to_bytes(4, "little") for n in point.get("lengths", [])))
        self.states = [{s: Memory(arrays[f"{s}_0"][1]) for s in point["states"]} for _ in range(2)]
        self.bind()

    def close(self):
        self.api.release("IoBinding", self.bindings)
        self.api.release("Value", self.values)
        self.api.release("Session", [self.session])

    def value(self, at, shape, kind=onnx_model.FLOAT):
        """An OrtValue of the memory at that address."""
        dims = (ctypes.c_int64 * len(shape))(*shape)
        out = self.api.new("CreateTensorWithDataAsOrtValue", self.api.info, at, 4 * math.prod(shape), ctypes.addressof(dims), len(shape), kind)
        self.values.append(out)
        return out

    def bind(self):
        """Makes a binding for each place of the states that a call reads."""
        x, y = self.value(self.input.at, self.inputs["input"]), self.value(self.output.at, self.outputs["output"])
        places = [{}, {}]  # values by state and layer
        for values, memory in zip(places, self.states):
            for s in self.point["states"]:
                shape = self.outputs[f"{s}_n_l0"]
                for layer in range(self.point["layers"]):
                    values[s, layer] = self.value(memory[s].at + 4 * math.prod(shape) * layer, shape)
        for first, last in places, places[::-1]:
            binding = self.api.new("CreateIoBinding", self.session)
            self.bindings.append(binding)
            self.api.call("BindInput", binding, b"input", x)
            self.api.call("BindOutput", binding, b"output", y)
            if "lengths" in self.point:
                self.api.call("BindInput", binding, b"lengths", self.value(self.lengths.at, [self.point["batch"]], onnx_model.INT32))
            for s, layer in first:
                self.api.call("BindInput", binding, f"{s}_0_l{layer}".encode(), first[s, layer])
                self.api.call("BindOutput", binding, f"{s}_n_l{layer}".encode(), last[s, layer])


class Rival:
    """The number of threads, and the layers that were prepared last."""

    def __init__(self, api):
        self.api, self.layers = api, None

    def open(self, m):
        self.threads = m["threads"]
        return {"ok": True}

    def prepare(self, m):
        q = m["prepare"]
        if self.layers:
            self.layers.close()
            self.layers = None
        p = q["point"]
        if p["pass"] != "forward":
            raise Unsupported("ONNX Runtime runs inference alone")
        onnx_model.operator(p)
        arrays = npz.read(q["data"])
        self.layers = Layers(self.api, p, arrays, 1 if q["knobs"].get("single") else self.threads)
        self.calls = "calls" in p
        self.take(arrays)
        self.make(1)
        self.take(arrays)
        return {"ok": True}

    def take(self, arrays):
        """Takes the inputs of the next calls and, if they are there, the states before the first one."""
        p, x = self.layers.point, arrays["input"][1]
        if "lengths" in p:
            x = padded(x, p["lengths"], p["steps"], 4 * p["input"])
        each = len(self.layers.input.bytes)
        self.given = [x[at : at + each] for at in range(0, len(x), each)]
        self.layers.input.bytes[:] = self.given[0]
        for s in p["states"]:
            if f"{s}_0" in arrays:
                self.layers.states[0][s].bytes[:] = arrays[f"{s}_0"][1]
                self.first = 0  # place of the states that the next call reads

    def turns(self, n):
        """The bindings of the next n calls: each reads the states that the one before has written. Runs
        of a whole sequence all begin with the same states."""
        both, first = self.layers.bindings, self.first
        self.last = (first + (n if self.calls else 1)) % 2
        if self.calls:
            self.first = self.last
        return itertools.islice(itertools.cycle((both[first], both[1 - first] if self.calls else both[first])), n)

    def make(self, n):
        """Makes n calls with one input, and returns the seconds that they took."""
        run, session, options, failed = self.api.raw["RunWithBinding"], self.layers.session, self.api.run_options, None
        turns = self.turns(n)
        start = time.perf_counter()
        for binding in turns:
            failed = run(session, options, binding) or failed
        took = time.perf_counter() - start
        self.api.check("RunWithBinding", failed)
        return took

    def run(self, m):
        return {"wall_s": self.make(m["run"])}

    def call(self, m):
        """Makes calls with inputs in turns, and times each, from before its input is written until its output is there."""
        if "data" in m:
            self.take(npz.read(m["data"]))
        run, session, options, failed = self.api.raw["RunWithBinding"], self.layers.session, self.api.run_options, None
        here, clock, times = self.layers.input.bytes, time.perf_counter, []
        end = clock() + m.get("settle_s", 0)
        while clock() < end:  # all from the same states
            failed = run(session, options, self.layers.bindings[self.first]) or failed
        for x, binding in zip(itertools.cycle(self.given), self.turns(m["call"])):
            start = clock()
            here[:] = x
            status = run(session, options, binding)
            times.append(clock() - start)
            failed = status or failed
        self.api.check("RunWithBinding", failed)
        return {"calls_s": [round(t, 9) for t in times]}

    def read(self, m):
        p, layers = self.layers.point, self.layers
        steps, ways, batch, hidden = layers.outputs["output"]
        y = side_by_side(layers.output.bytes, steps, ways, batch, 4 * hidden)
        shape = [steps, batch, ways * hidden]
        if "lengths" in p:
            y = packed(y, p["lengths"], 4 * ways * hidden)
            shape = [sum(p["lengths"]), ways * hidden]
        arrays = {"output": (shape, y)}
        for s in p["states"]:
            arrays[f"{s}_n"] = [p["layers"] * ways, batch, hidden], layers.states[self.last][s].bytes
        npz.write(m["read"], arrays)
        return {"ok": True}


def side_by_side(y, steps, ways, batch, row):
    """The outputs of each sequence in all directions side by side."""
    if ways == 1:
        return y
    at = lambda t, w, b: ((t * ways + w) * batch + b) * row
    return b"".join(y[at(t, w, b) : at(t, w, b) + row] for t in range(steps) for b in range(batch) for w in range(ways))


def padded(x, lengths, steps, row):
    """Rows of the steps that exist, as steps × sequences."""
    out, at = [], 0
    for t in range(steps):
        n = sum(t < length for length in lengths)  # the longest come first
        out += [x[at : at + n * row], bytes((len(lengths) - n) * row)]
        at += n * row
    return b"".join(out)


def packed(y, lengths, row):
    """Of steps × sequences, the rows of the steps that exist."""
    batch = len(lengths)
    return b"".join(y[t * batch * row : (t * batch + sum(t < length for length in lengths)) * row] for t in range(lengths[0]))


def main():
    try:
        rival = Rival(Api())
        hello = {
            "name": "onnxruntime",
            "version": rival.api.version,
            "devices": ["cpu"],
            "knobs": [{"name": "single", "doc": "1: compute with one thread, which may be faster than several", "values": [0, 1]}],
            "precisions": ["fp32", "int8"],
            "directions": ["forward", "reverse", "both"],
            "lengths": True,
            "calls": True,
        }
        verbs = {"hello": lambda _: hello, "open": rival.open, "prepare": rival.prepare, "run": rival.run, "call": rival.call, "read": rival.read}
    except OSError as e:
        verbs = {"hello": protocol.absent("ONNX Runtime's library", e)}
    gc.disable()  # no pauses
    protocol.serve(answers, verbs)


if __name__ == "__main__":
    main()
