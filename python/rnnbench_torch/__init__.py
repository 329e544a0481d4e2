"""Recurrent layers for PyTorch in the fastest way that rnnbench knows for this machine.

    from rnnbench_torch import LSTM
    model.lstm = LSTM.from_torch(model.lstm)   # the same parameters

LSTM, GRU and RNN take the place of torch.nn's. Layer has rnnbench's other cells, and cells from files.
"""

import math

import torch
from torch import nn
from torch.autograd.function import once_differentiable
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from .library import INPUT, PARAMETER, Plan, Stack, tensors, version

__all__ = ["GRU", "LSTM", "Layer", "RNN", "version"]

PRECISIONS = {torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16"}
CELLS = {"LSTM": "lstm", "GRU": "gru", "RNN_TANH": "rnn-tanh", "RNN_RELU": "rnn-relu"}  # by torch.nn's modes


class _Training(torch.autograd.Function):
    """A forward pass of a training plan, and its backward pass."""

    @staticmethod
    def forward(ctx, stack, key, names, dtype, states, input, *tensors):
        outputs, plan = stack.forward(key, names, dtype, input, tensors[:states], tensors[states:])
        ctx.kept = _Kept(stack, plan)
        ctx.set_materialize_grads(False)
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx, *gradients):
        stack, plan = ctx.kept.take()
        return (None,) * 5 + tuple(stack.backward(plan, gradients, ctx.needs_input_grad[5:]))


class _Kept:
    """A plan between its passes. If the graph is dropped, so is the plan's forward pass."""

    def __init__(self, stack, plan):
        self.stack, self.plan = stack, plan

    def take(self):
        plan, self.plan = self.plan, None
        if plan is None:
            raise RuntimeError("rnnbench runs the backward pass once: run the forward pass again, or use torch.nn.LSTM with retain_graph=True")
        return self.stack, plan

    def __del__(self):
        if self.plan is not None:
            self.stack.dropped.append(self.plan)


class _Stacks(dict):
    """The stacks of a module by device, precision and batch_first. Copies of the module make their own."""

    def __reduce__(self):
        return _Stacks, ()


class _Module:
    """What LSTM, GRU, RNN and Layer share. They have the attributes of torch.nn.RNNBase, and _description and _states."""

    def _begin(self, technique, precision):
        if precision not in (None, "fp32", "tf32", "bf16", "fp16", "int8"):
            raise ValueError(f"precision must be fp32, tf32, bf16, fp16 or int8, not {precision}")
        self.technique = technique
        self.precision = precision
        self._stacks = _Stacks()

    def forward(self, input, hx=None):
        """Returns the output and the last states, as torch.nn.LSTM does."""
        states = (None,) * self._states if hx is None else hx if self._states > 1 else (hx,)
        if len(states) != self._states:
            raise RuntimeError(f"hx must be {self._states} states, not {len(states)}")
        if isinstance(input, PackedSequence):
            outputs = self._packed(input, states)
        elif input.dim() == 2:
            states = [h if h is None else h.unsqueeze(1) for h in states]
            outputs = [x.squeeze(1) for x in self._run(input.unsqueeze(1), states, False)]
        elif input.dim() == 3:
            outputs = self._run(input, states, self.batch_first)
        else:
            raise RuntimeError(f"input must have 2 or 3 dimensions, not {input.dim()}")
        return outputs[0], outputs[1] if self._states == 1 else tuple(outputs[1:])

    def _packed(self, input, states):
        """Runs sequences of different lengths, padded and in their order before they were sorted."""
        padded, lengths = pad_packed_sequence(input)
        lengths = lengths.tolist()
        output, *states = self._run(padded, states, False, tuple(lengths) if min(lengths) < max(lengths) else None)
        if input.sorted_indices is not None:
            output = output.index_select(1, input.sorted_indices)
        output = pack_padded_sequence(output, sorted(lengths, reverse=True)).data
        return PackedSequence(output, input.batch_sizes, input.sorted_indices, input.unsorted_indices), *states

    def _run(self, input, states, batch_first, lengths=None):
        """Returns the output and the last states."""
        device, parameters = input.device, self._tensors()
        self._refuse(device)
        dtype = parameters[0].dtype
        if _is_autocast(device.type):
            dtype = _autocast_dtype(device.type)
        elif input.dtype != dtype:
            raise RuntimeError(f"input is {input.dtype} and the parameters are {dtype}: convert one")
        stack = self._stack(device, dtype, batch_first)
        training = torch.is_grad_enabled() and any(t.requires_grad for t in (*parameters, input, *states) if t is not None)
        batch, steps = input.shape[:2] if batch_first else (input.shape[1], input.shape[0])
        key = batch, steps, training, lengths
        if training:
            return _Training.apply(stack, key, self._names, dtype, len(states), input, *states, *parameters)
        return stack.forward(key, self._names, dtype, input, states, parameters)[0]

    def _tensors(self):
        """Returns the parameters in the order of _names."""
        try:
            return [self._parameters[name] for name in self._names]
        except KeyError:  # weight_norm, pruning and others put a tensor in a parameter's place
            return [getattr(self, name) for name in self._names]

    def _refuse(self, device):
        if device.type not in ("cpu", "cuda"):
            raise NotImplementedError(f"rnnbench runs on the devices cpu and cuda, not {device.type}: use torch.nn.LSTM")
        if self.dropout and self.training and self.num_layers > 1:
            raise NotImplementedError("rnnbench has no dropout between layers in training: use torch.nn.LSTM, or one module for each layer and torch.nn.Dropout between them")
        if torch._C._is_tracing():
            raise NotImplementedError("torch.jit cannot trace rnnbench: use torch.nn.LSTM")

    def _stack(self, device, dtype, batch_first):
        if dtype not in PRECISIONS:
            raise NotImplementedError(f"rnnbench computes in float32, float16 and bfloat16, not {dtype}: use torch.nn.LSTM")
        key = device, self.precision or PRECISIONS[dtype], batch_first
        stack = self._stacks.get(key)
        if stack is None:
            description = f"{self._description()},precision={key[1]},batchfirst={batch_first:d}"
            stack = self._stacks.setdefault(key, Stack(device, description, self.technique))
        return stack

    def tune(self, batch, steps, passes=("forward", "train")):
        """Times the likeliest techniques for a shape, once: later calls of the shape use the fastest. Returns each pass's plan, described."""
        parameter = self._tensors()[0]
        device = parameter.device
        self._refuse(device)
        dtype = _autocast_dtype(device.type) if _is_autocast(device.type) else parameter.dtype
        stack = self._stack(device, dtype, self.batch_first)
        return {name: stack.race((batch, steps, name == "train", None)) for name in passes}

    def flatten_parameters(self):
        """Has the parameters read again by the next calls. Needed only if they changed through .data or in a CUDA graph, and no backward pass came since."""
        Plan.changes += 1

    def _apply(self, *arguments, **named):
        self._stacks = _Stacks()
        return super()._apply(*arguments, **named)

    def __prepare_scriptable__(self):
        raise NotImplementedError("torch.jit cannot script rnnbench: use torch.nn.LSTM")


class _Torch(_Module):
    """What LSTM, GRU and RNN share: torch.nn's constructors, and two arguments of ours."""

    _states = 1

    def __init__(self, *arguments, technique="auto", precision=None, **named):
        super().__init__(*arguments, **named)
        self._begin(technique, precision)

    @classmethod
    def from_torch(cls, module, **named):
        """Returns a module that shares the parameters of one of torch.nn's. Arguments are technique and precision."""
        if not isinstance(module, cls._torch):
            raise TypeError(f"{cls.__name__}.from_torch takes a torch.nn.{cls.__name__}, not a {type(module).__name__}")
        if isinstance(module, nn.RNN):
            named["nonlinearity"] = module.nonlinearity
        elif module.proj_size:
            named["proj_size"] = module.proj_size
        new = cls(module.input_size, module.hidden_size, module.num_layers, bias=module.bias, batch_first=module.batch_first,
                  dropout=module.dropout, bidirectional=module.bidirectional, device="meta", **named)
        for name in new._names:
            setattr(new, name, getattr(module, name))
        return new.train(module.training)

    @property
    def _names(self):
        return self._flat_weights_names

    def _description(self):
        return _description(CELLS[self.mode], self)


class LSTM(_Torch, nn.LSTM):
    """torch.nn.LSTM. technique is auto or a technique with its settings, and precision that of the products, by default the parameters'."""

    _torch = nn.LSTM
    _states = 2


class GRU(_Torch, nn.GRU):
    """torch.nn.GRU. technique is auto or a technique with its settings, and precision that of the products, by default the parameters'."""

    _torch = nn.GRU


class RNN(_Torch, nn.RNN):
    """torch.nn.RNN. technique is auto or a technique with its settings, and precision that of the products, by default the parameters'."""

    _torch = nn.RNN


class Layer(_Module, nn.Module):
    """Layers of a cell that `rnnbench list cells` shows, or of a file of equations. hx and the last states are tuples in the cell's order."""

    dropout = 0

    def __init__(self, cell, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, bidirectional=False, proj_size=0,
                 heads=1, device=None, dtype=None, technique="auto", precision=None):
        super().__init__()
        self._begin(technique, precision)
        self.cell, self.input_size, self.hidden_size, self.num_layers, self.heads = cell, input_size, hidden_size, num_layers, heads
        self.bias, self.batch_first, self.bidirectional, self.proj_size = bias, batch_first, bidirectional, proj_size
        self._names, self._states = [], -1
        like = torch.empty(0, device=device, dtype=dtype)
        self._refuse(like.device)
        stack = Stack(like.device, self._description(), "naive")
        for name, kind, shape in tensors(stack.plan((1, 1, False, None)).handle):
            if kind == PARAMETER and (bias or not name.startswith("bias")):
                self.register_parameter(name, nn.Parameter(like.new_empty(shape)))
                self._names.append(name)
            self._states += kind == INPUT
        self.reset_parameters()

    def reset_parameters(self):
        """Draws the parameters as torch.nn.LSTM does."""
        bound = 1 / math.sqrt(self.hidden_size)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)

    def extra_repr(self):
        return self._description()

    def _description(self):
        return _description(self.cell, self) + f",heads={self.heads}"


def _description(cell, module):
    """Returns a module in the words of rnnbench_layer."""
    text = f"cell={cell},input={module.input_size},hidden={module.hidden_size},layers={module.num_layers}"
    text += ",direction=" + ("both" if module.bidirectional else "forward")
    return text + (f",projection={module.proj_size}" if module.proj_size else "")


if hasattr(torch, "get_autocast_dtype"):
    _is_autocast, _autocast_dtype = torch.is_autocast_enabled, torch.get_autocast_dtype
else:  # before PyTorch 2.4

    def _is_autocast(device):
        return torch.is_autocast_cpu_enabled() if device == "cpu" else torch.is_autocast_enabled()

    def _autocast_dtype(device):
        return torch.get_autocast_cpu_dtype() if device == "cpu" else torch.get_autocast_gpu_dtype()
