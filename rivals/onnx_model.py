"""Writes recurrent layers as an ONNX model, by Python alone: one operator a layer.

The inputs are `input`, the initial states of each layer and, where sequences have lengths of
their own, `lengths`. The outputs are `output` and the last states of each layer. `output` has the
operator's layout: steps × ways × batch × hidden.
"""

import array
import struct

from protocol import Unsupported

OPSET, IR_VERSION = 14, 8
FLOAT, INT8, INT32, INT64 = 1, 3, 6, 7  # data types
MICROSOFT = "com.microsoft"  # the operators of ONNX Runtime's own

# GRU whose reset gate multiplies the state, before the product, as cells/gru-before.cell has it.
BEFORE = ["gate r = sigmoid(W x + R h + b)", "gate z = sigmoid(W x + R h + b)", "gate n = tanh(W x + R (r * h) + b)", "h' = z * h + (1 - z) * n"]

# Cells: the operator, its own attributes, and its order of the gates and peepholes of rnnbench.
CELLS = {
    "rnn-tanh": ("RNN", {"activations": ["Tanh"]}, [0], []),
    "rnn-relu": ("RNN", {"activations": ["Relu"]}, [0], []),
    "gru": ("GRU", {"linear_before_reset": 1}, [1, 0, 2], []),
    "gru-before": ("GRU", {"linear_before_reset": 0}, [1, 0, 2], []),
    "lstm": ("LSTM", {}, [0, 3, 1, 2], []),
    "lstm-peephole": ("LSTM", {}, [0, 3, 1, 2], [0, 2, 1]),
}


def operator(point):
    """Returns the row of CELLS for a point of the protocol."""
    cell, text = point["cell"], point.get("equations", "")
    if text:
        lines = [" ".join(line.split("#")[0].split()) for line in text.splitlines()]
        cell = "gru-before" if [line for line in lines if line] == BEFORE else cell
    if cell not in CELLS:
        raise Unsupported(f"ONNX has no operator for {cell}")
    if point.get("precision") == "int8" and CELLS[cell][0] != "LSTM":
        raise Unsupported(f"ONNX Runtime has no operator of 8-bit weights for {cell}: DynamicQuantizeLSTM alone")
    return CELLS[cell]


# Protocol buffers: a field is its number and its kind, and then a varint or as many bytes.


def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out) + bytes([n])


def number(field, n):
    return varint(field << 3) + varint(n)


def block(field, *parts):
    parts = [p.encode() if isinstance(p, str) else p for p in parts]
    return b"".join([varint(field << 3 | 2), varint(sum(map(len, parts))), *parts])


def tensor(name, kind, shape, data):
    """A TensorProto that is an initializer of a graph."""
    return block(5, *(number(1, n) for n in shape), number(2, kind), block(8, name), block(9, data))


def attribute(name, value):
    """An AttributeProto of a node: an integer, a word, or a list of either."""
    if isinstance(value, int):
        body = [number(3, value), number(20, 2)]
    elif isinstance(value, str):
        body = [block(4, value), number(20, 3)]
    elif isinstance(value[0], int):
        body = [*(number(8, n) for n in value), number(20, 7)]
    else:
        body = [*(block(9, s) for s in value), number(20, 8)]
    return block(5, block(1, name), *body)


def node(kind, name, inputs, outputs, domain="", **attributes):
    """A NodeProto of a graph. An input that is left out has the name ""."""
    lists = [*(block(1, s) for s in inputs), *(block(2, s) for s in outputs)]
    own = [block(7, domain)] if domain else []
    return block(1, *lists, block(3, name), block(4, kind), *(attribute(*a) for a in attributes.items()), *own)


def value(field, name, shape, kind=FLOAT):
    """A ValueInfoProto of a graph: an input is field 11, an output 12."""
    dims = block(2, *(block(1, number(1, n)) for n in shape))
    return block(field, block(1, name), block(2, block(1, number(1, kind), dims)))


def ways_of(point):
    """The ways in which a layer reads its input, as the names of their parameters end."""
    return ["", "_reverse"] if point.get("direction") == "both" else [""]


def weights(point, arrays, layer):
    """Yields the parameters of a layer's operator: input number, name, shape and bytes."""
    _, _, gates, peeps = operator(point)
    hidden, ways = point["hidden"], ways_of(point)

    def rows(name, way, order):
        data = arrays[f"{name}_l{layer}{way}"][1]
        size = len(data) // len(order)
        return b"".join(data[k * size : (k + 1) * size] for k in order)

    wide = len(gates) * hidden
    for at, name in (1, "weight_ih"), (2, "weight_hh"):
        cols = arrays[f"{name}_l{layer}{ways[0]}"][0][1]
        yield at, f"{name}_l{layer}", [len(ways), wide, cols], b"".join(rows(name, way, gates) for way in ways)
    yield 3, f"bias_l{layer}", [len(ways), 2 * wide], b"".join(rows(name, way, gates) for way in ways for name in ("bias_ih", "bias_hh"))
    if peeps:
        yield 7, f"peephole_l{layer}", [len(ways), len(peeps) * hidden], b"".join(rows("peephole", way, peeps) for way in ways)


def quantized(name, shape, data):
    """Yields the weights of a DynamicQuantizeLSTM as initializers: integers of 8 bits, transposed, the
    scale of each column, and zeros. ONNX Runtime's own tool quantises so: a scale a column, symmetric."""
    ways, wide, cols = shape
    values = array.array("f", data)
    integers, scales = bytearray(len(values)), array.array("f")
    for way in range(ways):
        base = way * wide * cols
        for row in range(wide):
            one = values[base + row * cols : base + (row + 1) * cols]
            scale = max(map(abs, one)) / 127 or 1.0
            scales.append(scale)
            integers[base + row : base + wide * cols : wide] = bytes(round(v / scale) & 255 for v in one)
    yield tensor(name, INT8, [ways, cols, wide], bytes(integers))
    yield tensor(name + "_scale", FLOAT, [ways, wide], scales.tobytes())
    yield tensor(name + "_zero", INT8, [ways, wide], bytes(ways * wide))


def model(point, arrays):
    """Returns the bytes of the model of a point, whose parameters arrays has by name, and the
    names and shapes of its inputs and outputs."""
    kind, own, _, _ = operator(point)
    steps, batch, hidden, layers, ways = point["steps"], point["batch"], point["hidden"], point["layers"], ways_of(point)
    direction = {"both": "bidirectional"}.get(point.get("direction"), point.get("direction") or "forward")
    if "activations" in own:
        own = {"activations": own["activations"] * len(ways)}
    inputs, outputs, parts = {"input": [steps, batch, point["input"]]}, {}, []
    lengths = "lengths" if "lengths" in point else ""
    x, state = "input", [len(ways), batch, hidden]
    for layer in range(layers):
        reads, top = [x, "", "", "", lengths] + [""] * 3, layer == layers - 1
        of_scales, domain = [], ""
        for at, name, shape, data in weights(point, arrays, layer):
            reads[at] = name
            if point.get("precision") == "int8" and at in (1, 2):
                domain = MICROSOFT
                of_scales += [name + "_scale", name + "_zero"]
                parts += quantized(name, shape, data)
            else:
                parts.append(tensor(name, FLOAT, shape, data))
        writes = ["output" if top else f"y_l{layer}"]
        for at, s in enumerate(point["states"]):
            reads[5 + at] = f"{s}_0_l{layer}"
            inputs[f"{s}_0_l{layer}"] = state
            outputs[f"{s}_n_l{layer}"] = state
            writes.append(f"{s}_n_l{layer}")
        reads += of_scales
        while not reads[-1]:
            reads.pop()
        parts.append(node("DynamicQuantizeLSTM" if domain else kind, f"layer{layer}", reads, writes, domain, hidden_size=hidden, direction=direction, **own))
        if top:
            break
        # The next layer reads steps × batch × features. A transposition moves values only for both directions.
        y, x = writes[0], f"x_l{layer + 1}"
        if len(ways) > 1:
            parts.append(node("Transpose", f"transpose{layer}", [y], [f"t_l{layer}"], perm=[0, 2, 1, 3]))
            y = f"t_l{layer}"
        parts.append(node("Reshape", f"reshape{layer}", [y, "rows"], [x]))
    if layers > 1:
        parts.append(tensor("rows", INT64, [3], struct.pack("<3q", steps, batch, len(ways) * hidden)))
    if lengths:
        parts.append(value(11, lengths, [batch], INT32))
    outputs["output"] = [steps, len(ways), batch, hidden]
    parts += [value(11, *i) for i in inputs.items()] + [value(12, *o) for o in outputs.items()]
    graph = block(7, block(2, "rnnbench"), *parts)
    own_operators = block(8, block(1, MICROSOFT), number(2, 1)) if point.get("precision") == "int8" else b""
    return number(1, IR_VERSION) + block(2, "rnnbench") + block(8, number(2, OPSET)) + own_operators + graph, inputs, outputs
