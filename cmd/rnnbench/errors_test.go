package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"rnnbench/internal/exit"
	"rnnbench/tuner/bench"
	"rnnbench/tuner/config"
)

// usageErrors are mistakes in command lines, with a part of what is said of each.
var usageErrors = []struct {
	line, message string
}{
	{"swep", `unknown command "swep": did you mean sweep?`},
	{"swep --hidden 3", `unknown command "swep": did you mean sweep?`},
	{"help swep", `unknown command "swep": did you mean sweep?`},
	{"--hidden 3", `has no flag --hidden: it belongs to advise, explain, export, graph, model, sweep, train, tune, verify`},
	{"sweep --hiden 3", "sweep has no flag --hiden: did you mean --hidden?"},
	{"sweep -hidden 3", "did you mean --hidden?"},
	{"sweep -hidden=3", "did you mean --hidden?"},
	{"sweep -out x", "did you mean --out?"},
	{"sweep -x", "sweep has no flag -x"},
	{"show --hidden 3", "show has no flag --hidden: it belongs to advise, explain, export, graph, model, sweep, train, tune, verify"},
	{"sweep -H", "--hidden needs a value"},
	{"sweep --symbols 9", "embedding is 0: it must be at least 1"},
	{"sweep --symbols 9 --embedding 9 --input 8", "at most the input, which has 8 features"},
	{"sweep --symbols 9 --embedding 2 --onehot true", "use either onehot or symbols"},
	{"sweep --output 9 --groups 2", "it must divide the output, which has 9 classes"},
	{"sweep --weighted true", "set output"},
	{"sweep --direction backward", `unknown direction "backward"`},
	{"sweep --direction both --history 3 --pass train", "set history to 0"},
	{"train --direction both --history 3", "set history to 0"},
	{"sweep --lengths uniform:50% --history 3 --pass train", "set history to 0"},
	{"sweep --lengths uniform:40%", "must be 50% to 99%"},
	{"sweep --lengths half", "half: no such file: name a file with one length per line"},
	{"sweep --lengths .", ".: it is a folder: name a file with one length per line"},
	{"sweep --lengths 0+3 -B 2 -T 3", "a length is 0: each sequence must have at least 1 step"},
	{"sweep --lengths 2*3 -B 3 -T 3", "there are 2 lengths, but the batch has 3 sequences"},
	{"sweep --lengths 2+9 -B 2 -T 5", "the longest sequence has 9 steps, more than the 5 steps of the problem: set steps to 9"},
	{"sweep --lengths bad.toml", "is not a length: write one number of steps a line"},
	{"train --lengths uniform:50%", "train has no flag --lengths"},
	{"train --data events -T 30", "set steps to 31, or lower burnin"},
	{"train --beside --replicas 2 -B 4", "omit one of --beside and --replicas"},
	{"sweep -H abc", `--hidden: "abc" is not a size`},
	{"sweep --dry-run=maybe", `--dry-run: "maybe" must be true or false`},
	{"sweep H=512,B=3", "did you mean --point H=512,B=3?"},
	{"sweep hidden=512", "did you mean --hidden 512?"},
	{"sweep hidden 512", "did you mean --hidden?"},
	{"sweep gru", "did you mean --cell gru?"},
	{"tune persistent", "did you mean --impl persistent?"},
	{"sweep quick", "did you mean --preset quick?"},
	{"sweep -L 3", "sweep has no flag -L: did you mean --layers?"},
	{"train --data bad.toml", "which is a file: write text:bad.toml to learn its characters"},
	{"sweep -H 64, 128", "sweep takes flags only"},
	{"sweep --cell lstn", "did you mean lstm?\nhint: rnnbench list cells"},
	{"sweep --impl naiv", "did you mean naive?\nhint: rnnbench list techniques"},
	{"sweep --impl cudnnstyle:fusd=0", "did you mean fused?\nhint: rnnbench list knobs"},
	{"sweep --impl cudnnstyle:fused=7", "knob fused cannot be 7: it takes 1, 0\nhint: rnnbench list knobs"},
	{"sweep --impl persistent:bands=-1", "knob bands cannot be -1: it takes 0 to 1024\nhint: rnnbench list knobs"},
	{"sweep --energy --impl naive,cudnnstyle:fused=7 --cell gilr,lstm -T 3k", "knob fused cannot be 7"},
	{"sweep --dry-run --impl naive:foo=1", `naive: unknown knob "foo"`},
	{"tune --no-wisdom --impl cudnnstyle:fused=7", "knob fused cannot be 7"},
	{"train --impl naive:foo=1", `naive: unknown knob "foo"`},
	{"verify --impl naive:foo=1", `naive: unknown knob "foo"`},
	{"sweep --impl naive:fused=1", "unknown knob"},
	{"sweep --preset quik", "did you mean quick?\nhint: rnnbench list presets"},
	{"sweep --where hiden<3", "did you mean hidden?"},
	{"sweep --where hidden<3", "no point is left"},
	{"sweep --point H=1,H=2", "sets hidden twice"},
	{"sweep --precision tf32", "supports only fp32, fp16, bf16"},
	{"sweep --device cpuu", "did you mean cpu?"},
	{"sweep --device mps", `unknown device "mps": rnnbench measures on cpu and on NVIDIA GPUs`},
	{"sweep --device tpu:0", "rnnbench measures on cpu and on NVIDIA GPUs"},
	{"sweep --device CPU", "did you mean cpu?"},
	{"sweep --pass training", "did you mean train?"},
	{"sweep --pass inference", "did you mean forward?"},
	{"sweep --pass backward", "did you mean train?"},
	{"sweep --direction bidirectional", "did you mean both?"},
	{"sweep --bidirectional", "did you mean --direction both?"},
	{"sweep --cell LSTM", "did you mean lstm?"},
	{"sweep --cell vanilla", "did you mean rnn-tanh?"},
	{"sweep --precision float32", "did you mean fp32?"},
	{"sweep --seq_len 8", "did you mean --steps?"},
	{"sweep --batch-size 8", "did you mean --batch?"},
	{"sweep --hidden-size 8", "did you mean --hidden?"},
	{"sweep --dtype bf16", "did you mean --precision?"},
	{"sweep --where H=8", "did you mean hidden?"},
	{"sweep --zip H,B", "did you mean hidden?"},
	{"sweep --effort fast", "did you mean quick?"},
	{"run", "did you mean sweep?"},
	{"ls", "did you mean list?"},
	{"list implementations", "did you mean techniques?"},
	{"sweep --impl naive,cudnnstyle --baseline nave", `--baseline: unknown technique "nave": did you mean naive?`},
	{"sweep --simd avx3", "did you mean avx2?"},
	{"sweep --threads 2000", "2000 exceeds the maximum"},
	{"sweep --max-memory 3x", `"3x" is not a size`},
	{"sweep --effort quickly", "did you mean quick?"},
	{"sweep --rounds 5 --max-rounds 3", "--max-rounds is 3 and --rounds is 5"},
	{"sweep --calls 99", "a 99th percentile needs at least 100"},
	{"sweep --calls 100 --pass train", "calls is 100, but only the forward pass can be called step by step: use pass forward"},
	{"sweep --calls 100 --history 3", "history is 3 steps, but only training uses history"},
	{"sweep --calls 2Mi", "calls is 2097152: it must be 0 (none) to 1048576"},
	{"sweep --calls 1Mi -T 2048", "1048576 calls of 2048 steps are more than 1073741824 steps"},
	{"sweep --calls -5", `--calls: "-5" is not a size`},
	{"sweep --calls 100 --cache cold", "use --cache hot with --calls"},
	{"sweep --calls 100 --energy", "omit --energy or --calls"},
	{"tune --no-wisdom --calls 100 --cache cold", "use --cache hot with --calls"},
	{"export --calls 100 -H 3 -f x.npz", "export writes the answer of one run: omit --calls"},
	{"train --calls 100", "train has no flag --calls"},
	{"sweep --energy --cache cold", "use --cache hot with --energy"},
	{"sweep -o tabel", "did you mean table?"},
	{"sweep --color sometimes", "choose among auto, always, never"},
	{"sweep --config nothere.toml", "nothere.toml"},
	{"sweep --config bad.toml", "bad.toml:3:1: measure.min_sampels"},
	{"sweep --dry-run -o jsonl", "a dry run cannot be printed as jsonl"},
	{"verify -o benchfmt", "choose among"},
	{"tune --search racingg", "did you mean racing?"},
	{"tune --depth few", `--depth: "few" must be a number of knobs`},
	{"tune --tie 2", `"2" is not a share: did you mean 2%?`},
	{"tune --tie nan%", `--tie: "nan%" is not a percentage`},
	{"tune --margin -1%", `--margin: "-1%" is not a percentage`},
	{"tune --margin inf%", `--margin: "inf%" is not a percentage`},
	{"tune --max-evals -1", "must not be negative"},
	{"tune --impl cudnn --wisdom w.toml", "cudnn is a vendor library: add --with-vendor"},
	{"tune -o benchfmt", "choose among"},
	{"tune --impl auto", "--impl auto cannot be tuned"},
	{"sweep --impl auto:fused=1 --wisdom w.toml", "auto chooses its own settings: omit fused=1"},
	{"sweep --impl autoo", "did you mean auto?"},
	{"wisdom shw", "did you mean show?"},
	{"wisdom merge", "merge needs the files to merge"},
	{"wisdom prune --wisdom w.toml", "no entries selected"},
	{"wisdom prune --wisdom w.toml --older-than -5h", "--older-than: -5h0m0s must be more than 0"},
	{"wisdom prune --wisdom w.toml --older-than 0s", "--older-than: 0s must be more than 0"},
	{"wisdom prune --wisdom w.toml --older-than 5", `--older-than: "5" is not a time: write one with its unit, such as 720h`},
	{"wisdom export --wisdom w.toml --device x", "--wisdom: file w.toml does not exist"},
	{"wisdom lookup --hiden 3", "did you mean --hidden?"},
	{"show --pivot hidden", "is not two axes"},
	{"show --metric time", "--metric needs --pivot"},
	{"plot -f x.gif", "use one of the endings .svg, .png, .pdf"},
	{"plot -f - -f -", "-f - is given twice: omit one"},
	{"plot -f x.svg -f y.svg -f ./x.svg", "-f ./x.svg is given twice: omit one"},
	{"plot --kind line -f x.svg", "did you mean lines?"},
	{"sweep --zip hidden -H 1,2", "--zip: hidden is a single axis"},
	{"sweep --zip hiden,batch", `rnnbench: --zip: unknown axis "hiden": did you mean hidden?`},
	{"compare", "compare needs a base run"},
	{"compare a b --fail-on slow", `unknown verdict "slow": did you mean slower?`},
	{"compare a b --only sme", "did you mean same?"},
	{"compare a b --min-effect 2", `"2" is not a share: did you mean 2%?`},
	{"compare a b --alpha x", `--alpha: "x" is not a percentage`},
	{"report -f x.pdf", "the report is HTML"},
	{"list cels", "did you mean cells?"},
	{"list cells presets", "list takes one argument"},
	{"reproduce fig4", `unknown experiment "fig4": choose among diamos-fig4, hwang-fig4`},
	{"reproduce appleyard-tabel1", "did you mean appleyard-table1?"},
	{"reproduce hwang-fig4 hwang-graph hwang-fig4 --dry-run", "hwang-fig4 is named twice: omit one"},
	{"reproduce --from x", "--from takes one experiment: name one"},
	{"reproduce --resume x", "--resume takes one experiment, or all"},
	{"reproduce list --from x", "--from takes one experiment: name one"},
	{tinyGrid + " --impl cudnnstyle,cudnnstyle:fused=1", "--impl cudnnstyle and cudnnstyle:fused=1 have the same settings: omit one"},
	{"explain -H 1,2", "the flags name 2 points"},
	{"explain -o dot", "name one, as in --impl naive"},
	{"export -H 3", "no output file"},
	{"export -H 64 --heads 5 -o x.npz", "heads is 5: it must divide the hidden units, of which a layer has 64"},
	{"export -H 64 --projection 96 -o x.npz", "projection is 96: it must be 0 (none) or less than the hidden units, of which a layer has 64"},
	{"export -H 64 --heads 2 --projection 32 -o x.npz", "a projection would mix the heads"},
	{"export -H 64 --resets 101% -o x.npz", "resets are 101%: they must be 0% (none) to 100% of the steps"},
	{"export -H 64 --resets 3% --lengths uniform:50% -o x.npz", "sequences with resets have all steps, so set lengths to full, or resets to none"},
	{"sweep -H 64 --resets 2.5%", `--resets: "2.5%" has no percentages: write whole ones such as 3%, a list such as 1%,10%, or none`},
	{"sweep --device gpu", `--device: unknown device "gpu": a GPU is cuda:0, the next one cuda:1`},
	{"sweep --device CUDA0", "a GPU is cuda:0"},
	{"export -H 3 -f x.npy", "x.npy can hold only one array, but export writes several: use the ending .npz"},
	{"graph", "graph takes one cell or one file"},
	{"graph lstmm", "unknown cell \"lstmm\": did you mean lstm?"},
	{"graph bad.toml", "unknown key \"version\" above the tables: write one of name, layer, connection\nhint: rnnbench graph --help"},
	{"graph lstm --layers 0", "must be at least 1"},
	{"graph lstm --layers 1000000", "--layers must be at most 1024"},
	{"sweep -H 8 --layers 1000000000", "layers is 1000000000: it must be at most 1024"},
	{"export -H 3 --impl all -f x.npz", "export writes one answer, but the flags name"},
	{"completion", "takes the name of a shell"},
	{"completion bsh", "did you mean bash?"},
	{"sweep --shard 5/4", "--shard: 5/4: the shard must be from 1 to 4"},
	{"tune --shard 0/0", "--shard: 0/0: the number of shards must be from 1 to"},
	{"reproduce diamos-fig3 --shard three", `--shard: "three" is not a shard: write one such as 3/16, or off`},
	{"reproduce all --shard 1/2", "--shard divides one experiment: name one, or add --shard off"},
	{"sweep --profile --shard 1/2", "--profile measures the whole plan: add --shard off"},
	{"sweep --auto race --shard 1/2", "so shards would differ: use --auto predict"},
	{"tune --regret --shard 1/2", "--regret measures the whole plan: add --shard off"},
	{"tune --from x --shard 1/2", "--shard applies to measuring"},
	{"tune --check --shard 1/2", "--check measures the whole plan: add --shard off"},
	{"tune --check --regret", "--check and --regret exclude each other: omit one"},
	{"tune --check --from x", "--check measures, but --from searches recorded runs"},
	{"tune --check --objective energy", "--check compares times: omit --objective energy"},
	{"tune --check --resume x", "--check measures every candidate again: omit --resume"},
	{"tune --check --search exhaustive", "name another search, or omit --check"},
	{"merge", "merge needs the shards to merge"},
	{"merge nothere", "nothing to read at nothere"},
	{"merge bad.toml", "bad.toml is a file: name the folder of a shard"},
	{"submit slrum", `unknown scheduler "slrum": did you mean slurm?`},
	{"submit pbs --shards 2 -- sweep", `has no flag --shards`},
	{"submit slurm", "submit slurm takes its own flags and, after --, the command whose shards it submits"},
	{"submit slurm --shards 2 sweep", "submit slurm takes its own flags and, after --,"},
	{"submit slurm -- sweep --preset quick", "the number of shards is missing: add --shards N"},
	{"submit slurm --shards 0 -- sweep --preset quick", "the number of shards is 0: it must be from 1 to 100000"},
	{"submit slurm --shards many -- sweep --preset quick", `--shards: "many" is not a number`},
	{"submit slurm --shards 2 --group a=2 -- sweep --preset quick", "omit --shards and --gres"},
	{"submit slurm --group a=2 --gres gpu:1 -- sweep --preset quick", "omit --shards and --gres"},
	{"submit slurm --group a -- sweep --preset quick", `--group: "a" is not a group: write NAME=SHARDS:REQUEST`},
	{"submit slurm --group a=1 --group a=2 -- sweep --preset quick", "--group: a is named twice: omit one"},
	{"submit slurm --group a=1 --require-device cpu -- sweep --preset quick", "--require-device needs all shards on one kind of device"},
	{"submit slurm --shards 2 --time soon -- sweep --preset quick", `--time: "soon" is not a time limit: write one such as 2h or 90m`},
	{"submit slurm --shards 2 --sbatch qos -- sweep --preset quick", `--sbatch: "qos" is not an option of sbatch`},
	{"submit slurm --shards 2 --sbatch --array=3 -- sweep --preset quick", "--sbatch: rnnbench sets --array itself"},
	{"submit slurm --shards 2 --name Nightly -- sweep --preset quick", `--name: "Nightly" must be at most`},
	{"submit slurm --shards 2 -- train --shard 1/2", "the submitted train does not take --shard"},
	{"submit slurm --shards 2 -- train --iterations 0", "training would never stop"},
	{"submit slurm --shards 2 -- train --data coppy", `there is no task "coppy": choose one of copy`},
	{"submit slurm --shards 2 -- train --optimizer adam:lr=0", "--optimizer: "},
	{"tune --objective joules", `unknown objective "joules": choose among time, energy`},
	{"tune --objective energy --cache cold", "energy is counted while runs follow each other"},
	{"tune --objective energy --regret", "--regret compares times: omit --objective energy"},
	{"tune --objective energy --from out", "--from searches recorded times: omit --objective energy"},
	{"sweep --objective energy --auto race", "--auto race measures times: with --objective energy, use --auto predict"},
	{"train --shard 5/4", "--shard: 5/4: the shard must be from 1 to 4"},
	{"train --shard 1/2 --auto race", "--auto race measures while the plan is made"},
	{"submit slurm --shards 2 -- swep", `unknown command to submit "swep": did you mean sweep?`},
	{"submit slurm --shards 2 -- sweep --shard 1/2", "the submitted sweep does not take --shard"},
	{"submit slurm --shards 2 -- sweep --out=x", "the submitted sweep does not take --out"},
	{"submit slurm --shards 2 -- sweep --hiden 3", "sweep has no flag --hiden: did you mean --hidden?"},
	{"submit slurm --shards 2 -- sweep hidden=3", "did you mean --hidden 3?"},
	{"submit slurm --shards 2 -- sweep --effort quickly", "did you mean quick?"},
	{"submit slurm --shards 2 -- sweep --auto race", "--auto race measures while the plan is made"},
	{"submit slurm --shards 2 -- reproduce", "a shard belongs to one experiment: name one"},
	{"submit slurm --shards 2 -- reproduce all", "a shard belongs to one experiment: name one"},
	{"submit slurm --shards 2 -- reproduce diamos-fig99", `unknown experiment "diamos-fig99"`},
	{"submit kubernetes --shards 2 --claim c -- sweep --preset quick", "the container image is missing: add --image IMAGE"},
	{"submit kubernetes --shards 2 --image i -- sweep --preset quick", "a volume for the results is missing: add --claim NAME for an existing one, or --storage SIZE"},
	{"submit kubernetes --shards 2 --image i --claim c --limit gpu -- sweep --preset quick", `--limit: "gpu" is not KEY=VALUE`},
	{"submit kubernetes --shards 2 --image i --claim c --node-selector x= -- sweep --preset quick", `--node-selector: "x=" is not KEY=VALUE`},
	{"submit kubernetes --group a=2:gpu --image i --claim c -- sweep --preset quick", `--group: "gpu" is not KEY=VALUE`},
	{"submit status", "submit status takes the folder of one submission"},
	{"submit status nothere", "nothere is not the folder of a submission"},
	{"sweep --shard 1,2/3", "1,2/3 lists shards, but this is not a job of an array"},
	{"sweep --shard 1/2 --submitted-version v0", "the job was submitted by rnnbench v0, but node "},
	{"version now", "version takes flags only"},
}

// TestUsageErrors: a mistake ends with its exit code and one sentence, and leaves no folder.
func TestUsageErrors(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("bad.toml", []byte("version = 1\n[measure]\nmin_sampels = 3\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range usageErrors {
		o := rnnbench(t, c.line)
		if o.code != exit.Usage || !strings.Contains(o.errors, c.message) || o.out != "" {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q; want code 2 and %q", c.line, o.code, o.out, o.errors, c.message)
		}
		if !strings.HasPrefix(withoutBusy(o.errors), "rnnbench: ") || strings.Contains(o.errors, "rnnbench: rnnbench:") {
			t.Errorf("%s: stderr begins otherwise: %q", c.line, o.errors)
		}
	}
	o := rnnbench(t, fmt.Sprintf("sweep --threads %d", bench.ThreadsEach*runtime.NumCPU()+1))
	o.want(t, exit.Usage, nil, []string{"--threads: "})
	if _, err := os.Stat(config.Dir); err == nil {
		t.Error("a mistake in the command line made a results folder")
	}
}

// TestEmptyRuns: an empty argument, as an unset shell variable leaves it, is an error. It does
// not name the latest run.
func TestEmptyRuns(t *testing.T) {
	t.Chdir(t.TempDir())
	rnnbench(t, tiny).want(t, exit.Done, nil, nil)
	for _, args := range [][]string{
		{"sweep", "--resume", ""}, {"tune", "--resume="}, {"tune", "--from", "out", "--from="}, {"reproduce", "diamos-barrier", "--resume", ""}, {"reproduce", "diamos-barrier", "--from="},
		{"show", ""}, {"show", "label="}, {"compare", "", ""}, {"compare", ""}, {"plot", "", "-f", "x.svg"}, {"report", "", "-f", "x.html"},
	} {
		o := rnnbenchWith(t.Context(), "", args...)
		if o.code != exit.Usage || !strings.Contains(o.errors, "is empty: write a ") || o.out != "" {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q", args, o.code, o.out, o.errors)
		}
	}
	if runs, err := filepath.Glob("out/*/manifest.json"); err != nil || len(runs) != 1 {
		t.Errorf("runs %v, %v", runs, err)
	}
}

// TestEmptyFlags: an empty value, as an unset shell variable leaves it, is an error. An empty
// --fail-on must not pass every comparison.
func TestEmptyFlags(t *testing.T) {
	t.Chdir(t.TempDir())
	rnnbench(t, tiny).want(t, exit.Done, nil, nil)
	for _, args := range [][]string{
		{"sweep", "--config", ""}, {"sweep", "--wisdom="}, {"sweep", "--max-memory", ""}, {"sweep", "--baseline="},
		{"wisdom", "show", "--wisdom", ""}, {"wisdom", "prune", "--stale", "--device", ""}, {"wisdom", "export", "--device="}, {"wisdom", "export", "-f", ""},
		{"compare", "out", "out", "--fail-on", ""}, {"compare", "out", "out", "--only="}, {"show", "--filter", ""}, {"show", "--pivot="},
		{"plot", "-f", "x.svg", "--x", ""}, {"plot", "-f", "x.svg", "-f", ""}, {"report", "-f", ""}, {"graph", "lstm", "--out", ""}, {"doctor", "--machine", ""},
		{"export", "-H", "3", "-f", ""},
	} {
		o := rnnbenchWith(t.Context(), "", args...)
		if o.code != exit.Usage || !strings.Contains(o.errors, "the value is empty: write a value, or omit the flag\nhint: rnnbench ") || o.out != "" {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q", args, o.code, o.out, o.errors)
		}
	}
}

func TestOtherErrors(t *testing.T) {
	t.Chdir(t.TempDir())
	rnnbench(t, "sweep --device cuda:0").want(t, exit.NoDevice, nil, []string{"cuda:0 is not available: cannot find the GPU worker", "hint: build it with make cuda"})
	t.Setenv(bench.WorkerVariable, "/nothere")
	rnnbench(t, "sweep --device cuda:0").want(t, exit.NoDevice, nil, []string{"RNNBENCH_CUDA names the worker /nothere, which cannot be run: "})
	rnnbench(t, "show").want(t, exit.Error, nil, []string{"no runs found", "rnnbench sweep --preset quick"})
	rnnbench(t, "show nothere").want(t, exit.Error, nil, []string{"nothere"})
	rnnbench(t, "sweep --resume nothere").want(t, exit.Error, nil, []string{"nothere", "hint:"})
	rnnbench(t, "show -").want(t, exit.Error, nil, []string{"no records in -"})
	if err := os.WriteFile("file", nil, 0o666); err != nil {
		t.Fatal(err)
	}
	rnnbench(t, tiny+" --out file/out").want(t, exit.Error, nil, []string{"file/out", "hint: set --out DIR"})
	// Nothing succeeds: the only technique cannot run on four streams.
	o := rnnbench(t, tinyGrid+" --impl naive --streams 4")
	o.want(t, exit.Error, []string{"skipped"}, []string{"no point succeeded: 2 skipped", "naive runs on one stream, not 4"})
	t.Setenv("RNNBENCH_ROUNDS", "many")
	rnnbench(t, tiny).want(t, exit.Usage, nil, []string{"RNNBENCH_ROUNDS"})
}
