"""The C library librnnbench by ctypes: stacks of layers and their plans. Its interface is capi/rnnbench.h."""

import array
import ctypes
import ctypes.util
import json
import os
import threading

import torch

DTYPES = [torch.float32, torch.float16, torch.bfloat16]  # enum of number formats
FORMATS = {dtype: i for i, dtype in enumerate(DTYPES)}
PARAMETER, INPUT, OUTPUT, GIVEN, GRADIENT = range(5)  # enum of kinds of tensors
UNSUPPORTED, MEMORY = 2, 3  # statuses that have their own exceptions

_lock = threading.RLock()
_library = None  # the loaded library
_process = None  # the process that loaded it
_devices = {}  # handles of open devices by name


def library():
    """Returns the library, loaded by the first call."""
    if _library is None:
        with _lock:
            if _library is None:
                _load()
    if os.getpid() != _process:
        raise RuntimeError("rnnbench was loaded before os.fork and works in the parent alone: start the child by 'spawn', or load rnnbench in the child first")
    return _library


def _load():
    global _library, _process
    here = os.path.dirname(os.path.abspath(__file__))
    path = os.environ.get("RNNBENCH_LIBRARY")
    if not path:
        beside = [os.path.join(here, "librnnbench.so"), os.path.join(here, "..", "..", "bin", "librnnbench.so")]
        path = next(filter(os.path.exists, beside), ctypes.util.find_library("rnnbench") or "librnnbench.so")
    try:
        loaded = ctypes.CDLL(path)
    except OSError as e:
        raise ImportError(f"librnnbench.so was not found or does not load ({e}): run 'make lib' in rnnbench's checkout, or set RNNBENCH_LIBRARY to its path") from None
    handle, text, number = ctypes.c_uint64, ctypes.c_char_p, ctypes.c_int
    out, pointer = ctypes.POINTER(handle), ctypes.c_void_p
    loaded.rnnbench_error.restype = text
    loaded.rnnbench_version.restype = text
    for name, arguments in {
        "open": (text, out),
        "layer": (handle, text, out),
        "plan": (handle, number, number, text, text, pointer, out),
        "describe": (handle, ctypes.POINTER(text)),
        "tensor": (handle, number, ctypes.POINTER(text), ctypes.POINTER(number), ctypes.POINTER(number), ctypes.POINTER(ctypes.c_int64)),
        "bind_all": (handle, number, pointer, pointer),
        "update": (handle,),
        "forward": (handle, pointer),
        "backward": (handle, pointer),
        "release": (handle,),
        "wait": (handle,),
        "close": (handle,),
    }.items():
        function = getattr(loaded, "rnnbench_" + name)
        function.argtypes, function.restype, function.errcheck = arguments, number, _check
    _library, _process = loaded, os.getpid()


def _check(status, function, arguments):
    if status:
        sentence = _library.rnnbench_error().decode()
        if status == UNSUPPORTED:
            raise NotImplementedError(sentence + "; torch.nn.LSTM, GRU and RNN are the fallback")
        raise (MemoryError if status == MEMORY else RuntimeError)(sentence)


def version():
    """Returns the version of the library."""
    return library().rnnbench_version().decode()


def describe(handle):
    """Returns what the library says of a device, a layer or a plan."""
    text = ctypes.c_char_p()
    library().rnnbench_describe(handle, ctypes.byref(text))
    return json.loads(text.value)


def _device(device):
    """Returns the handle of a torch.device. On a CPU the library has as many threads as PyTorch."""
    if device.type == "cpu":
        name = f"cpu:{torch.get_num_threads()}"
    else:
        name = f"cuda:{device.index or 0}"
    with _lock:
        if name not in _devices:
            handle = ctypes.c_uint64()
            library().rnnbench_open(name.encode(), ctypes.byref(handle))
            _devices[name] = handle.value
        return _devices[name]


class Stack:
    """A stack of layers on a device, and its plans."""

    keep = 32  # as many plans that no call uses are kept; more are closed, the longest unused first

    def __init__(self, device, description, technique="auto"):
        self.library = library()
        self.device, self.technique = device, technique
        self.raced = set()  # keys of plans whose technique was raced
        self.lock = threading.Lock()  # plans are taken and given, and run forward, by one thread at a time
        self.free = {}  # unused plans by their keys, the longest unused first
        self.dropped = []  # plans whose backward pass will not come
        self.handle = 0
        handle = ctypes.c_uint64()
        self.library.rnnbench_layer(_device(device), description.encode(), ctypes.byref(handle))
        self.handle = handle.value

    def __del__(self):
        if getattr(self, "handle", 0) and os.getpid() == _process:
            self.library.rnnbench_close(self.handle)

    def forward(self, key, names, dtype, input, states, parameters):
        """Runs the plan of the key (batch, steps, training, lengths). Returns the output and the last states, and the plan."""
        library()
        with self.lock:
            plan = self.take(key)
            try:
                outputs = plan.forward(names, dtype, input, states, parameters)
            except BaseException:
                self.give(plan)
                raise
            if not plan.training:
                self.give(plan)
        return outputs, plan

    def backward(self, plan, gradients, wanted):
        """Runs the backward pass of a plan, which is then unused."""
        library()
        with self.lock:
            try:
                return plan.backward(gradients, wanted)
            finally:
                self.give(plan)

    def take(self, key):
        """Returns an unused plan; the caller has the lock."""
        while self.dropped:
            plan = self.dropped.pop()
            self.library.rnnbench_release(plan.handle)
            self.give(plan)
        plans = self.free.pop(key, None)
        if plans is None:
            return self.plan(key)
        plan = plans.pop()
        if plans:
            self.free[key] = plans
        return plan

    def give(self, plan):
        """Makes a plan the latest of the unused ones; the caller has the lock."""
        plans = self.free.pop(plan.key, [])
        plans.append(plan)
        self.free[plan.key] = plans

    def race(self, key):
        """Makes the plan whose technique is the fastest when timed, and returns its description."""
        with self.lock:
            self.raced.add(key)
            for plan in self.free.pop(key, ()):
                if not plan.captured:
                    self.library.rnnbench_close(plan.handle)
            plan = self.plan(key)
            self.give(plan)
            return describe(plan.handle)

    def plan(self, key):
        """Makes a plan, and closes the longest unused ones beyond keep; the caller has the lock."""
        unused = [p for plans in self.free.values() for p in plans if not p.captured]
        for plan in unused[: max(0, len(unused) + 1 - self.keep)]:
            self.free[plan.key].remove(plan)
            if not self.free[plan.key]:
                del self.free[plan.key]
            self.library.rnnbench_close(plan.handle)
        batch, steps, training, lengths = key
        if lengths is not None:
            lengths = (ctypes.c_int32 * batch)(*lengths)
        handle = ctypes.c_uint64()
        arguments = (self.handle, batch, steps, b"train" if training else b"forward",
                     ("race" if key in self.raced else self.technique).encode(), lengths, ctypes.byref(handle))
        try:
            self.library.rnnbench_plan(*arguments)
        except MemoryError:
            if not torch.cuda.is_initialized():
                raise
            torch.cuda.empty_cache()  # PyTorch may hold what is missing
            self.library.rnnbench_plan(*arguments)
        return Plan(self, key, handle.value)


class Plan:
    """A stack planned for one shape, and the memory bound to its tensors."""

    changes = 0  # grows when parameters may have changed and no version tells: at each backward pass

    def __init__(self, stack, key, handle):
        self.library, self.key, self.handle = stack.library, key, handle
        self.training, self.device = key[2], stack.device
        self.index, self.shape, kinds = {}, {}, {}
        for name, kind, shape in tensors(handle):
            self.index[name], self.shape[name] = len(self.index), shape
            kinds.setdefault(kind, []).append(name)
        self.inputs = kinds[INPUT]  # the input, then the states before the first step
        self.outputs = kinds[OUTPUT]  # the output, then the states after the last step
        self.given = kinds.get(GIVEN, [])  # gradients of outputs
        self.memory = array.array("Q", [0] * len(self.index))  # addresses of all tensors
        self.format = array.array("i", [0] * len(self.index))
        self.bound = len(self.index), self.memory.buffer_info()[0], self.format.buffer_info()[0]
        self.captured = False  # in a CUDA graph, which needs its memory
        self.dtype = None  # of the outputs
        self.names = ()  # of the parameters
        self.addresses = self.versions = None  # of the parameters as they were read
        self.alive = None  # the parameters that were read: nothing else gets their addresses

    def forward(self, names, dtype, input, states, parameters):
        """Runs the forward pass. Parameters are in the order of names; dtype is that of the outputs."""
        self.update(names, parameters)
        if dtype != self.dtype:
            self.dtype = dtype
            for name in self.outputs + self.given:
                self.format[self.index[name]] = FORMATS[dtype]
        inputs = _contiguous((input, *states))
        for name, tensor in zip(self.inputs, inputs):
            self.bind(name, tensor)
        outputs = [self.empty(name, input, dtype) for name in self.outputs]
        for name, tensor in zip(self.outputs, outputs):
            self.memory[self.index[name]] = tensor.data_ptr()
        if input.is_cuda and torch.cuda.is_current_stream_capturing():
            self.captured = True
        self.library.rnnbench_bind_all(self.handle, *self.bound)
        self.library.rnnbench_forward(self.handle, _stream(input))
        return tuple(outputs)

    def update(self, names, parameters):
        """Has the parameters read if they have changed since they were."""
        addresses = [p.data_ptr() for p in parameters]
        try:
            versions = Plan.changes, [p._version for p in parameters]
        except RuntimeError:  # tensors made in inference_mode have no versions
            versions = object()
        if addresses != self.addresses:
            for name, p in zip(names, parameters):
                if not p.is_contiguous():
                    raise RuntimeError(f"{name} is not contiguous: assign its contiguous() copy")
                self.bind(name, p)
            self.names, self.alive = names, [p.detach() for p in parameters]
        elif versions == self.versions:
            return
        self.library.rnnbench_update(self.handle)
        self.addresses, self.versions = addresses, versions

    def bind(self, name, tensor):
        i = self.index[name]
        if tensor is None:
            self.memory[i] = 0
            return
        if tensor.shape != self.shape[name]:
            raise RuntimeError(f"{name} must have the shape {self.shape[name]}, not {tuple(tensor.shape)}")
        if tensor.device != self.device or tensor.dtype not in FORMATS:
            raise RuntimeError(f"{name} is {tensor.dtype} on {tensor.device}: it must be of 16 or 32 bits on {self.device}")
        self.format[i] = FORMATS[tensor.dtype]
        self.memory[i] = tensor.data_ptr()

    def empty(self, name, like, dtype):
        """Returns memory for a tensor of that name. Without dtype, new_empty takes half the time."""
        return like.new_empty(self.shape[name]) if like.dtype is dtype else like.new_empty(self.shape[name], dtype=dtype)

    def backward(self, gradients, wanted):
        """Runs the backward pass, given the gradients of the outputs. Returns those of inputs, states and parameters, None where not wanted."""
        gradients = _contiguous(gradients)
        if gradients[0] is None:
            gradients[0] = torch.zeros(self.shape["output"], dtype=self.dtype, device=self.device)
        for name, gradient in zip(self.outputs, gradients):
            i = self.index.get("grad_" + name)
            if i is not None:
                self.memory[i] = 0 if gradient is None else gradient.data_ptr()
            elif gradient is not None:
                raise NotImplementedError(f"rnnbench takes no gradient of {name} of this layer: use torch.nn.LSTM, or {name}.detach()")
        results = []
        for name, want in zip([*self.inputs, *self.names], wanted):
            result, i = None, self.index["grad_" + name]
            self.memory[i] = 0
            if want:
                self.format[i] = self.format[self.index[name]]
                result = self.empty(name, gradients[0], DTYPES[self.format[i]])
                self.memory[i] = result.data_ptr()
            results.append(result)
        self.library.rnnbench_bind_all(self.handle, *self.bound)
        self.library.rnnbench_backward(self.handle, _stream(gradients[0]))
        Plan.changes += 1
        return results


def _contiguous(tensors):
    return [t if t is None else t.contiguous() for t in tensors]


def tensors(plan):
    """Yields name, kind and shape of each tensor of a plan."""
    name, kind, rank, shape = ctypes.c_char_p(), ctypes.c_int(), ctypes.c_int(), (ctypes.c_int64 * 3)()
    for i in range(1 << 20):
        library().rnnbench_tensor(plan, i, ctypes.byref(name), ctypes.byref(kind), ctypes.byref(rank), shape)
        if name.value is None:
            return
        yield name.value.decode(), kind.value, tuple(shape[:rank.value])


def _stream(tensor):
    """Returns the address of the stream on which PyTorch now works."""
    if tensor.is_cuda:
        return torch._C._cuda_getCurrentRawStream(tensor.get_device())
