"""What the programs in Python here share: requests of rnnbench and answers to them. docs/rivals.md describes the protocol."""

import json
import os
import sys


class Unsupported(Exception):
    """Work that a program declines, with the reason. spent: the process can do nothing more."""

    def __init__(self, why, spent=False):
        super().__init__(why)
        self.spent = spent


def answers():
    """Returns where answers go. What libraries print goes to standard error from now on: standard
    output is the protocol's."""
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return out


def absent(what, why):
    """Returns the answer to hello where a library cannot be loaded."""
    answer = {"error": f"{what} is not there for {sys.executable}: {why}"}
    return lambda _: answer


FAST_BLAS = ("openblas", "mkl", "blis", "atlas", "armpl", "nvpl", "accelerate")


def version(version, config, libraries):
    """A version of PyTorch as rnnbench records it, given its configuration and the paths of loaded libraries.
    Comparisons with a build that multiplies by a generic BLAS are warned of. A build for a generic BLAS may have
    loaded a fast one in its place, as Debian's does."""
    generic = "BLAS_INFO=generic" in config and not any(name in path.lower() for path in libraries for name in FAST_BLAS)
    return version + " (generic BLAS)" * generic


def libraries():
    """The paths of all libraries that this process has loaded; none where the system does not tell."""
    try:
        with open("/proc/self/maps") as maps:
            return {line.split()[-1] for line in maps if ".so" in line}
    except OSError:
        return set()


def said(e):
    """What an exception says, in a line. A compiler's quotes the program, with a caret below the place. Its message
    follows the caret, or is that of the exception that caused it."""
    text = str(e)
    lines = text.splitlines()
    carets = [i for i, line in enumerate(lines) if line.strip() and not line.strip("^ ")]
    if carets:
        text = " ".join(lines[carets[-1] + 1 :])
        if not text.strip() and e.__cause__ is not None:
            return said(e.__cause__)
        text = f"{text.strip() or 'no message'} ({lines[0]} {lines[carets[-1] - 1].strip()})"
    return f"{type(e).__name__}: {text}"


def serve(out, verbs):
    """Answers requests until rnnbench closes. verbs are functions of a request by its verb."""
    for line in sys.stdin:
        m = json.loads(line)
        verb = next((v for v in verbs if v in m), None)
        if verb is None:  # close
            return
        try:
            answer = verbs[verb](m)
        except Unsupported as e:
            answer = {"unsupported": str(e), "spent": e.spent}
        except Exception as e:  # the point is lost, and rnnbench ends this process
            answer = {"error": said(e)}
        print(json.dumps(answer), file=out, flush=True)
