from . import steps


def scan(gates, tokens):
    n = gates.shape[-1]
    if n & (n - 1) or not 32 <= n <= 65536:
        raise RuntimeError("seqlen must be a power of 2, >= 32, <= 65536")
    return steps(gates, tokens)
