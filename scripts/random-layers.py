#!/usr/bin/env python3
"""Random layers, which nobody tuned for: auto without wisdom, our techniques and oneDNN on the CPU, in turns.

Draws sizes log-uniformly, for four cells and one or two layers, in fp32. Measures each layer forward and in training.
With --simd avx2, oneDNN is limited to AVX2, too. Prints a line for each layer, worst first, and geometric means.
A time is the mean of the fastest quarter of the samples. Needs make build rival-onednn.
"""
import argparse, collections, json, math, os, pathlib, random, subprocess, sys, tempfile

arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
arguments.add_argument("--seed", type=int, default=1)
arguments.add_argument("--count", type=int, default=20, help="layers to draw")
arguments.add_argument("--units", default="24:1400", help="LEAST:MOST")
arguments.add_argument("--batch", default="1:120", help="LEAST:MOST")
arguments.add_argument("--pass", default="forward,train", dest="passes")
arguments.add_argument("--simd", default="avx2")
arguments.add_argument("--threads", default="2")
arguments.add_argument("--rounds", default="10", help="samples of each technique")
arguments.add_argument("--bin", default="bin/rnnbench")
o = arguments.parse_args()
rng = random.Random(o.seed)


def drawn(span):
    least, most = map(float, span.split(":"))
    return round(math.exp(rng.uniform(math.log(least), math.log(most))))


def layer():
    units, batch, layers = drawn(o.units), drawn(o.batch), rng.choice([1, 1, 1, 2])
    if rng.random() < 0.5 and units > 64:
        units = units // 32 * 32
    cell = rng.choice(["lstm", "lstm", "gru", "rnn-tanh", "rnn-relu"])
    flops = 4 * {"lstm": 4, "gru": 3}.get(cell, 1) * units * units * batch * layers
    return cell, units, batch, max(8, min(200, int(3e9 / flops))), layers


points = [layer() for _ in range(o.count)]
environment = dict(os.environ)
if o.simd == "avx2":
    environment["ONEDNN_MAX_CPU_ISA"] = "AVX2"
geo = lambda v: math.exp(sum(map(math.log, v)) / len(v)) if v else math.nan
for name in o.passes.split(","):
    out = tempfile.mkdtemp()
    command = [o.bin, "sweep", "--no-hostname", "--simd", o.simd, "--threads", o.threads, "--rival", "rivals/onednn.toml",
               "--impl", "persistent,cudnnstyle,auto,onednn", "--pass", name, "--rounds", o.rounds, "--max-rounds", o.rounds,
               "--min-time", "8ms", "--min-iters", "1", "--warmup", "30ms", "--allow-failures", "-q", "-o", "csv", "--out", out]
    for cell, units, batch, steps, layers in points:
        command += ["--point", f"cell={cell},H={units},B={batch},T={steps},L={layers}"]
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    if run.returncode:
        sys.exit(run.stderr)
    times, choices, odd = collections.defaultdict(dict), {}, []
    for line in next(pathlib.Path(out).rglob("records.jsonl")).open():
        r = json.loads(line)
        p, label = r["point"], r["impl"]["label"]
        key = p["cell"], p["hidden"], p["batch"], p["steps"], p["layers"]
        if r["status"] != "ok":
            odd.append((key, label, r["status"], r["reason"]))
            continue
        samples = sorted(r["samples"]["wall_s"])
        fastest = samples[:(len(samples) + 3) // 4]
        times[key][label] = sum(fastest) / len(fastest)
        if label == "auto":
            choices[key] = r["impl"]["name"]
    rows = []
    for key, t in times.items():
        own = min((v, k) for k, v in t.items() if k != "onednn")
        rows.append((t["onednn"] / own[0], t["onednn"] / t["auto"], own[0] / t["auto"], key, own[1], choices[key], t))
    for best, auto, regret, (cell, units, batch, steps, layers), impl, choice, t in sorted(rows, key=lambda r: r[1]):
        print(f"{name:7} {cell:8} {units:5} × {batch:3} × {steps:3}, {layers}: oneDNN/auto {auto:5.2f}  oneDNN/best {best:5.2f}  best/auto {regret:5.2f}"
              f"  auto {choice:10} " + "  ".join(f"{k} {t[k] * 1e6:.0f}" for k in ("persistent", "cudnnstyle", "onednn") if k in t))
    large = [r for r in rows if r[3][1] >= 400]
    print(f"{name}, seed {o.seed}, {o.simd}: oneDNN/auto {geo([r[1] for r in rows]):.3f}, worst {min(r[1] for r in rows):.2f}; 400 units and more"
          f" {geo([r[1] for r in large]):.3f} of {len(large)}; oneDNN/best {geo([r[0] for r in rows]):.3f}, worst {min(r[0] for r in rows):.2f}, large"
          f" {geo([r[0] for r in large]):.3f}; best/auto {geo([r[2] for r in rows]):.3f}, worst {min(r[2] for r in rows):.2f}", *odd, sep="\n", flush=True)
