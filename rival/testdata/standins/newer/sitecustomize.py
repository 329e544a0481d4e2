"""Adds the scan of PyTorch 2.11 to an older one."""

import sys
import types


def associative_scan(combine_fn, xs, dim, reverse=False, combine_mode="pointwise"):
    import torch

    assert combine_mode == "generic", "pointwise needs a GPU"
    assert 0 <= dim < xs[0].dim() and all(x.shape == xs[0].shape for x in xs)
    with torch.no_grad():
        steps = list(zip(*(x.unbind(dim) for x in xs)))
        states = []
        for step in reversed(steps) if reverse else steps:
            states.append(combine_fn(states[-1], step) if states else step)
        return tuple(torch.stack(x[::-1] if reverse else x, dim) for x in zip(*states))


package, module = types.ModuleType("torch._higher_order_ops"), types.ModuleType("torch._higher_order_ops.associative_scan")
module.associative_scan = associative_scan
sys.modules |= {package.__name__: package, module.__name__: module}
