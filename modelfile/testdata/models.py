"""Writes recurrent modules as PyTorch saves them, each with an input and PyTorch's output: NAME.json.

python3 models.py FOLDER all    # every form, in every kind of file
python3 models.py FOLDER        # the files that are here
"""
import itertools, json, os, sys
import torch

folder, every = sys.argv[1], sys.argv[2:] == ["all"]
STEPS, BATCH, INPUT, HIDDEN = 4, 3, 5, 7


class Model(torch.nn.Module):
    """A model whose recurrent module is rnn.layer. Only where it is called is it scripted."""

    def __init__(self, layer):
        super().__init__()
        self.rnn = torch.nn.ModuleDict({"layer": layer})
        self.head = torch.nn.Linear(2, 2)

    def forward(self, x):
        return self.rnn["layer"](x)[0]


def checkpoint(model, path):
    state = {"epoch": 3, "model_state_dict": model.state_dict(), "best": 0.5, "names": ["a", None],
             "optimizer": torch.optim.Adam(model.parameters()).state_dict(), "shape": torch.Size([1]), "size": 1 << 70}
    torch.save(state, path, pickle_protocol=4)


def transposed(model, path):
    """Saves tensors that lie by columns, and all biases in one storage."""
    state = {k: v.t().contiguous().t() if v.dim() == 2 else v for k, v in model.state_dict().items()}
    biases = [k for k in state if k.startswith("rnn") and "bias" in k]
    if biases:
        together, at = torch.cat([state[k] for k in biases]), 0
        for k in biases:
            state[k], at = together[at:at + len(state[k])], at + len(state[k])
    torch.save(state, path)


KINDS = {
    "state": lambda m, path: torch.save(m.state_dict(), path),
    "legacy": lambda m, path: torch.save(m.state_dict(), path, _use_new_zipfile_serialization=False),
    "checkpoint": checkpoint,
    "transposed": transposed,
    "module": torch.save,
    "module-legacy": lambda m, path: torch.save(m, path, _use_new_zipfile_serialization=False),
    "script": lambda m, path: torch.jit.script(m).save(path),
}


def write(name, kind, number, cell, projection=0, **options):
    operator, _, activation = cell.partition("-")
    if activation:
        options["nonlinearity"] = activation
    if projection:
        options["proj_size"] = projection
    torch.manual_seed(1)
    layer = getattr(torch.nn, operator.upper())(INPUT, HIDDEN, **options)
    model = Model(layer).to(number)
    KINDS[kind](model, os.path.join(folder, name + ".pt"))
    with torch.no_grad():
        x = torch.randn(STEPS, BATCH, INPUT)
        y = model.to(torch.float32)(x)
    with open(os.path.join(folder, name + ".json"), "w") as f:
        json.dump({"cell": cell, "steps": STEPS, "batch": BATCH, "input": [round(v, 9) for v in x.flatten().tolist()],
                   "output": [round(v, 9) for v in y.flatten().tolist()]}, f)
        f.write("\n")


numbers = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
cells = [("lstm", 0), ("lstm", 3), ("gru", 0), ("rnn-tanh", 0), ("rnn-relu", 0)]
if every:
    forms = itertools.product(cells, [1, 3], [False, True], [True, False])
    for i, ((cell, projection), layers, both, bias) in enumerate(forms):
        for j, kind in enumerate(KINDS):
            if kind != "script" or both:
                write(f"{kind}{i}", kind, numbers[(i + j) % 4], cell, projection, num_layers=layers, bidirectional=both, bias=bias)
else:
    write("checkpoint", "checkpoint", torch.float32, "lstm", num_layers=2, bidirectional=True)
    write("state", "state", torch.float16, "lstm", 3)
    write("legacy", "legacy", torch.bfloat16, "gru", bidirectional=True)
    write("transposed", "transposed", torch.float64, "rnn-tanh", num_layers=2)
    write("module", "module", torch.float32, "rnn-relu", bias=False)
