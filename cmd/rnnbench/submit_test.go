package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rnnbench/cluster"
	"rnnbench/internal/exit"
	"rnnbench/record"
)

// TestSubmitExamples dry-runs every example of the help.
func TestSubmitExamples(t *testing.T) {
	t.Chdir(t.TempDir())
	all := submitCommand(&program{})
	examples, tried := all.Example, 0
	for _, c := range all.Commands() {
		examples += "\n" + c.Example
	}
	for line := range strings.Lines(examples) {
		args := shell(strings.TrimSpace(line))
		if len(args) < 3 || args[2] == "status" {
			continue
		}
		args = dryly(args[1:])
		want := "#SBATCH --array=1-"
		if args[1] == "kubernetes" {
			want = "completionMode: Indexed"
		}
		rnnbenchWith(t.Context(), "", args...).want(t, exit.Done, []string{want, args[slices.Index(args, "--")+1]}, nil)
		tried++
	}
	if tried < 8 {
		t.Errorf("%d examples were tried: are they still read?", tried)
	}
	if left, err := os.ReadDir("."); err != nil || len(left) != 0 {
		t.Errorf("a dry run left %v, %v", left, err)
	}
}

// dryly adds --dry-run to the arguments of a submit.
func dryly(args []string) []string {
	i := slices.Index(args, "--")
	if i < 0 || slices.Contains(args[:i], "--dry-run") {
		return args
	}
	return slices.Insert(slices.Clone(args), i, "--dry-run")
}

// TestSubmitDry: flags reach the scripts.
func TestSubmitDry(t *testing.T) {
	t.Chdir(t.TempDir())
	rnnbench(t, "submit slurm --shards 3 --name night --gres gpu:1 --partition p --time 2h --account a --constraint c --sbatch --qos=high --copy --require-device cuda-x --dry-run -- sweep -H 8 --label two").want(t, exit.Done, []string{
		"---- shards.sh ----", "--array=1-3", "--gres=gpu:1", "--partition=p", "--time=02:00:00", "--account=a", "--constraint=c", "--qos=high", "/night/bin/rnnbench sweep -H 8 --label two --out ",
		"--submitted-version", "--submitted-device cuda-x", `--shard "$SLURM_ARRAY_TASK_ID/3"`, "---- merge.sh ----", "/night/bin/rnnbench merge ",
	}, nil)
	o := rnnbench(t, "submit slurm --shards 3 --dry-run -- tune -H 8")
	o.want(t, exit.Done, []string{"#SBATCH --exclusive\n", "/out/tune-"}, nil)
	if o = rnnbench(t, "submit slurm --shards 3 --shared --dry-run -- tune -H 8"); strings.Contains(o.out, "--exclusive") {
		t.Error(o.out)
	}
	rnnbench(t, "submit kubernetes --group a=2:kind=x --group b=3:kind=y --image i --program /rb --claim c --namespace n --limit gpu=2 --node-selector disk=ssd --time 90m --name night --dry-run -- sweep -H 8").want(t, exit.Done, []string{
		`name: "night-a"`, `name: "night-b-merge"`, `"disk":"ssd","kind":"x"`, `image: "i"`, `command: ["/rb"]`, `claimName: "c"`, `namespace: "n"`, `{"gpu":"2"}`, "activeDeadlineSeconds: 5400", "completions: 3", "/results/night/b",
	}, nil)
}

// TestSchedulerIsMissing: submit names the missing command of a scheduler, and creates nothing.
func TestSchedulerIsMissing(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("PATH", t.TempDir())
	rnnbench(t, "submit slurm --shards 3 -- sweep -H 8").want(t, exit.Error, nil, []string{"sbatch is not installed here: submit where the scheduler's commands are\nhint: --dry-run prints"})
	rnnbench(t, "submit kubernetes --shards 3 --image i --claim c -- sweep -H 8").want(t, exit.Error, nil, []string{"kubectl is not installed here"})
	if exists("out") {
		t.Error("a submission was made")
	}
}

// sbatch is a scheduler that runs jobs immediately, except for the shards in $SKIPPED.
const sbatch = `#!/bin/sh
for script; do :; done
n=$(cat "$COUNTER" 2>/dev/null || echo 100)
echo $((n + 1)) >"$COUNTER"
array=$(sed -n 's/^#SBATCH --array=//p' "$script" | tr -- '-' ' ')
[ -n "$array" ] || sh "$script" >&2
for i in $(seq $array $(echo $array | cut -d' ' -f1 | head -n $((1 - $(echo $array | grep -c ' '))))); do
	[ "$i" = "$SKIPPED" ] || SLURM_ARRAY_TASK_ID=$i sh "$script" >&2
done
echo $((n + 1))
`

// TestSubmitted submits to a scheduler that loses a shard, and retries. Jobs run the real scripts.
func TestSubmitted(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for processes; the suite without -short runs it")
	}
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no shell to run scripts: ", err)
	}
	bin := t.TempDir()
	t.Chdir(t.TempDir())
	if err := os.WriteFile(filepath.Join(bin, "sbatch"), []byte(sbatch), 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	t.Setenv("COUNTER", filepath.Join(bin, "count"))
	t.Setenv("SKIPPED", "2")
	t.Setenv(beProgram, "1")
	const submit = "submit slurm --shards 3 --name night --copy -- sweep -H 8,16,24,32,40,48 -B 2 -T 3 --impl naive --rounds 2 --max-rounds 2 --warmup 0s --min-time 0s"
	rnnbench(t, submit).want(t, exit.Done, nil, []string{"job 101: 3 shards\njob 102 merges them\nhint: rnnbench submit status out/night"})
	rnnbench(t, submit).want(t, exit.Usage, nil, []string{"out/night holds a submission already"})
	rnnbench(t, "submit status night").want(t, exit.Failures, []string{"1/3", "done", "2/3", "missing", "3 of 3"}, []string{
		"warning: the scheduler cannot be asked", "3 shards: 2 done, 1 missing", "1 shard failed or missing\nhint: rnnbench submit status out/night --retry submits them again"})
	rnnbench(t, "show out/night").want(t, exit.Done, nil, nil) // the merge ran although a shard was missing
	t.Setenv("SKIPPED", "")
	rnnbench(t, "submit status night --retry").want(t, exit.Error, nil, []string{"the scheduler cannot be asked which jobs still wait, so nothing was submitted: squeue "})
	if err := os.WriteFile(filepath.Join(bin, "squeue"), []byte("#!/bin/sh\n"), 0o777); err != nil {
		t.Fatal(err)
	}
	rnnbench(t, "submit status night --retry").want(t, exit.Done, []string{"missing"}, []string{"job 103: 1 shard\njob 104 merges them"})
	rnnbench(t, "submit status out/night -o json").want(t, exit.Done, []string{`"done"`}, []string{"3 shards: 3 done"})
	rnnbench(t, "submit status out/night --retry").want(t, exit.Done, nil, []string{"no shard failed or is missing, so nothing was submitted"})
	m, recs, _, err := record.Read(filepath.Join("out", "night"))
	if err != nil || len(recs) != 6 || m.Merged == nil || !m.Merged.Complete() || slices.Contains(m.Argv, "--submitted-version") {
		t.Errorf("%d records, %v of %v", len(recs), err, m.Argv)
	}
	s, err := cluster.Read(filepath.Join("out", "night"))
	if err != nil || len(s.Rounds) != 2 || !slices.Equal(s.Rounds[1].Jobs[0].Shards, []int{2}) || !exists(s.Program) {
		t.Errorf("%+v, %v", s, err)
	}

	rnnbench(t, tiny+" --out other --shard 1/2 --submitted-version "+version()+" --submitted-device cpu-none").want(t, exit.NoDevice, nil, []string{"the job was submitted for device cpu-none, but node ", " has cpu-"})
	rnnbench(t, tiny+" --out other --shard 1/2 --submitted-version "+version()).want(t, exit.Done, nil, nil)
}
