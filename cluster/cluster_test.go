package cluster

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rnnbench/record"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// example is a submission of two groups, with words that a shell must not touch.
func example(scheduler string) *Submission {
	s := &Submission{
		Schema: Schema, Name: "nightly", Scheduler: scheduler, Created: time.Date(2026, 11, 25, 19, 0, 0, 0, time.UTC),
		Version: "v1.2.3", Device: "cuda-nvidia-h100", Program: "/shared/my bin/rnnbench", Dir: "/shared/50%/nightly", Work: "/home/me",
		Command: []string{"sweep", "--where", "mem<=8GiB", "--label", "it's $HOME"},
		Groups:  []Group{{"h100", 3, "gpu:h100:1"}, {"a100", 12, ""}},
	}
	switch scheduler {
	case "slurm":
		s.Slurm = &Slurm{Partition: "gpu", Time: "02:00:00", Account: "me", Constraint: "a|b", Options: []string{"--qos=high", "--mem=8G", "--comment=a b"}}
	case "kubernetes":
		s.Dir, s.Program = "/results/nightly", "rnnbench"
		s.Groups[0].Request = "nvidia.com/gpu.product=H100"
		s.Kubernetes = &Kubernetes{Image: "registry.example/rnnbench:1", Namespace: "bench", Claim: "nightly", Storage: "1Gi", Seconds: 7200, Selectors: []string{"disk=ssd"}}
	}
	s.Rounds = []Round{{Time: s.Created, Jobs: s.All()}}
	return s
}

// again adds a retry of three shards.
func again(s *Submission) *Submission {
	s.Rounds = append(s.Rounds, Round{Time: s.Created, Jobs: []Job{{Group: "a100", Shards: []int{3, 7, 8}}}})
	return s
}

func texts(t *testing.T, s *Submission, n int) []Text {
	t.Helper()
	by, err := s.Of()
	if err != nil {
		t.Fatal(err)
	}
	list, err := by.Texts(s, n)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestTexts compares what schedulers are given with the golden files.
func TestTexts(t *testing.T) {
	for _, scheduler := range Schedulers() {
		s := again(example(scheduler))
		for n := range s.Rounds {
			for _, x := range texts(t, s, n) {
				path := filepath.Join("testdata", x.Name)
				if *update {
					if err := errors.Join(os.MkdirAll("testdata", 0o777), os.WriteFile(path, []byte(x.Content), 0o666)); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if x.Content != string(want) {
					t.Errorf("%s is now\n%s", path, x.Content)
				}
			}
		}
	}
}

// scheduler answers commands, and records what it was asked.
type scheduler struct {
	answers map[string]string // by the beginning of the command
	asked   []string
}

func (f *scheduler) run(name string, args ...string) (string, error) {
	line := strings.Join(append([]string{name}, args...), " ")
	f.asked = append(f.asked, line)
	for start, answer := range f.answers {
		if strings.HasPrefix(line, start) {
			if text, bad := strings.CutPrefix(answer, "error: "); bad {
				return "", errors.New(text)
			}
			return answer, nil
		}
	}
	return "", fmt.Errorf("%s is not there", name)
}

// TestSubmitSlurm submits, is refused half-way, and reads what was submitted.
func TestSubmitSlurm(t *testing.T) {
	dir := t.TempDir()
	s := example("slurm")
	if err := s.Create(dir); err != nil {
		t.Fatal(err)
	}
	if err := s.Create(dir); err == nil || !strings.Contains(err.Error(), "holds a submission already") {
		t.Error(err)
	}
	by := &scheduler{answers: map[string]string{
		"sbatch --parsable " + dir + "/shards-h100.sh": "11;cluster\n", "sbatch --parsable " + dir + "/shards-a100.sh": "12\n",
		"sbatch --parsable --dependency=afterany:11:12 " + dir + "/merge.sh": "13\n",
	}}
	if err := s.Submit(by.run, dir); err != nil {
		t.Fatal(err)
	}
	r, err := Read(dir)
	if err != nil || r.Rounds[0].Jobs[0].ID != "11" || r.Rounds[0].Jobs[1].ID != "12" || r.Rounds[0].Merge != "13" {
		t.Errorf("%+v, %v", r, err)
	}
	delete(by.answers, "sbatch --parsable "+dir+"/shards-a100.sh")
	s.Rounds = []Round{{Jobs: s.All()}}
	err = s.Submit(by.run, dir)
	if r, bad := Read(dir); err == nil || bad != nil || r.Rounds[0].Jobs[0].ID != "11" || r.Rounds[0].Jobs[1].ID != "" {
		t.Errorf("%v, %v: %+v", err, bad, r)
	}
	by.answers["sbatch"] = "Submitted\n"
	if err := s.Submit(by.run, dir); err == nil || !strings.Contains(err.Error(), "printed no job number") {
		t.Error(err)
	}
}

// TestStatesOfSlurm reads squeue and sacct, and works without one of them.
func TestStatesOfSlurm(t *testing.T) {
	s := again(example("slurm"))
	s.Rounds[0].Jobs[0].ID, s.Rounds[0].Jobs[1].ID, s.Rounds[1].Jobs[0].ID = "11", "12", "20"
	by := &scheduler{answers: map[string]string{
		"squeue --noheader --array --states=all --jobs=11": "11_1|RUNNING|v1|None\n11_2|PENDING||Resources\n",
		"squeue --noheader --array --states=all --jobs=12": "error: slurm_load_jobs error: Invalid job id specified",
		"squeue --noheader --array --states=all --jobs=20": "20_7|RUNNING|v4|None\n",
		"sacct --noheader --parsable2 --allocations --array --jobs=12": "12_3|FAILED|v2|None\n12_4|CANCELLED by 0|v3|None\n12_5|TIMEOUT|v3|None\n12_7|NODE_FAIL|v3|None\n" +
			"12_8|COMPLETED|v3|None\nmangled\n12_x|FAILED|v|None\n12_99|FAILED|v|None\n",
	}}
	l := s.Slurm
	got, err := l.States(by.run, s)
	want := map[Place]State{
		{"h100", 1}: {Running, "11_1", "v1", ""}, {"h100", 2}: {Queued, "11_2", "", "Resources"},
		{"a100", 3}: {Failed, "12_3", "v2", "failed"}, {"a100", 4}: {Failed, "12_4", "v3", "cancelled"}, {"a100", 5}: {Failed, "12_5", "v3", "timeout"},
		{"a100", 7}: {Running, "20_7", "v4", ""}, {"a100", 8}: {Done, "12_8", "v3", ""},
	}
	if err != nil || len(got) != len(want) {
		t.Errorf("%v, %v", got, err)
	}
	for at, state := range want {
		if got[at] != state {
			t.Errorf("%v: %v, want %v", at, got[at], state)
		}
	}
	if got, err := l.States((&scheduler{}).run, s); err == nil || got != nil {
		t.Errorf("%v, %v of no scheduler", got, err)
	}
}

// TestStatesOfKubernetes reads the Indexed Jobs and their pods.
func TestStatesOfKubernetes(t *testing.T) {
	s := again(example("kubernetes"))
	by := &scheduler{answers: map[string]string{"kubectl apply": "created", "kubectl get": ""}}
	for n := range s.Rounds {
		if err := s.Kubernetes.Start(by.run, s, n, "d"); err != nil {
			t.Fatal(err)
		}
	}
	if want := "kubectl apply --filename=" + filepath.Join("d", "manifest-retry-1.yaml") + " --namespace=bench"; !slices.Contains(by.asked, want) {
		t.Errorf("%q lacks %q", by.asked, want)
	}
	if got, err := s.Kubernetes.States(by.run, s); err != nil || len(got) != 0 {
		t.Errorf("%v, %v of jobs that are gone", got, err)
	}
	delete(by.answers, "kubectl get")
	pod := func(index, phase string) string {
		return fmt.Sprintf(`{"metadata":{"annotations":{"batch.kubernetes.io/job-completion-index":"%s"}},"spec":{"nodeName":"k1"},"status":{"phase":"%s"}}`, index, phase)
	}
	for start, answer := range map[string]string{
		"job nightly-h100 ": `{"status":{"completedIndexes":"0","failedIndexes":"2"}}`, "job nightly-a100 ": `{"status":{"conditions":[{"type":"Failed","status":"True","reason":"DeadlineExceeded"}],"completedIndexes":"0,3-5"}}`,
		"job nightly-a100-r1 ": `{"status":{}}`, "pods --selector=job-name=nightly-h100 ": `{"items":[` + pod("1", "Running") + `,` + pod("2", "Failed") + `]}`,
		"pods --selector=job-name=nightly-a100 ": `{"items":[]}`, "pods --selector=job-name=nightly-a100-r1 ": `{"items":[` + pod("1", "Pending") + `,` + pod("", "Running") + `]}`,
	} {
		by.answers["kubectl get "+start] = answer
	}
	got, err := s.Kubernetes.States(by.run, s)
	if err != nil || len(got) != 15 {
		t.Fatalf("%d states, %v", len(got), err)
	}
	for at, want := range map[Place]State{
		{"h100", 1}: {Done, "nightly-h100-0", "", ""}, {"h100", 2}: {Running, "nightly-h100-1", "k1", ""}, {"h100", 3}: {Failed, "nightly-h100-2", "", "failed"},
		{"a100", 2}: {Failed, "nightly-a100-1", "", "DeadlineExceeded"}, {"a100", 5}: {Done, "nightly-a100-4", "", ""}, {"a100", 7}: {Queued, "nightly-a100-r1-1", "k1", ""},
	} {
		if got[at] != want {
			t.Errorf("%v: %+v, want %+v", at, got[at], want)
		}
	}
}

// TestMistakes: what no scheduler accepts is refused, and named.
func TestMistakes(t *testing.T) {
	for want, change := range map[string]func(*Submission){
		"--name: \"Nightly\" must be at most 36 lower-case": func(s *Submission) { s.Name = "Nightly" },
		"--name: \"" + strings.Repeat("n", 37) + "\" must":  func(s *Submission) { s.Name = strings.Repeat("n", 37) },
		"--shards or --group must say":                      func(s *Submission) { s.Groups = nil },
		"the number of shards is 0: it must be from 1":      func(s *Submission) { s.Groups[0].Shards = 0 },
		"--group: h100 is named twice":                      func(s *Submission) { s.Groups[1].Name = "h100" },
		"--group: the name merge is taken":                  func(s *Submission) { s.Groups[1].Name = "merge" },
		"--group: the name \"\" must be":                    func(s *Submission) { s.Groups[1].Name = "" },
	} {
		s := example("slurm")
		change(s)
		if err := s.Check(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for text, want := range map[string]Group{"h100=8:gpu:h100:1": {"h100", 8, "gpu:h100:1"}, "cpu=4": {"cpu", 4, ""}} {
		if g, err := ParseGroup(text); err != nil || g != want {
			t.Errorf("%s: %v, %v", text, g, err)
		}
	}
	for _, text := range []string{"", "8", "h100", "=8", "h100=x", "h100=8x:gpu", "h100=:gpu"} {
		if g, err := ParseGroup(text); err == nil {
			t.Errorf("%q is read as %v", text, g)
		}
	}
	for text, want := range map[string]string{"": "", "2h": "02:00:00", "90m": "01:30:00", "61s": "00:02:00", "1-12": "1-12", "120": "120", "1:00:00": "1:00:00"} {
		if got, err := SlurmTime(text); err != nil || got != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"soon", "-2h", "0s", "1:2:3:4"} {
		if got, err := SlurmTime(text); err == nil {
			t.Errorf("%s is read as %s", text, got)
		}
	}
	for _, o := range []string{"qos=high", "--", "--array=1-3", "-a 3", "-a1-1000", "-o/tmp/x", "-Ha1-9", "--arra=1-9", "--ar 1-9", "--out=x", "--workdir=x", "--output=x", "--comment=a\nb", `--comment="a"`} {
		if CheckOption(o) == nil {
			t.Errorf("option %q is taken", o)
		}
	}
}

// TestRead refuses files that are no submission, or one of another program.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"":                                   "is not the folder of a submission",
		"{":                                  "is damaged",
		`{"schema":"rnnbench.submission/9"}`: `has the schema "rnnbench.submission/9"`,
		`{"schema":"rnnbench.submission/1"}`: "is damaged: --name",
		`{"schema":"rnnbench.submission/1","name":"a","groups":[{"shards":2}],"scheduler":"pbs"}`: `unknown scheduler "pbs"`,
	} {
		if text != "" {
			if err := os.WriteFile(filepath.Join(dir, File), []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if text == "" {
			if _, err := Read(t.TempDir()); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
			continue
		}
		if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestNode refuses another version, another device than the submission's, and another than the
// first shard's. Errors name both.
func TestNode(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	a := Node{Name: "v1", Shard: "1/3", Device: "cpu-a", Version: "v1"}
	b := Node{Name: "v2", Shard: "2/3", Device: "cpu-b", Version: "v2"}
	if err := errors.Join(a.SameVersion("v1"), a.SameDevice(dir, "cpu-a"), a.SameDevice(dir, "")); err != nil {
		t.Error(err)
	}
	for want, err := range map[string]error{
		"the job was submitted by rnnbench v1, but node v2 has rnnbench v2": b.SameVersion("v1"),
		"the job was submitted for device cpu-a, but node v2 has cpu-b":     b.SameDevice(dir, "cpu-a"),
		"shard 1/3 began on device cpu-a of node v1, but node v2 has cpu-b": b.SameDevice(dir, ""),
		"shard 2/3 began on device cpu-b of node v2, but node v1 has cpu-a": first(b, a, t.TempDir()),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
}

// first has x begin, then y.
func first(x, y Node, dir string) error {
	if err := x.SameDevice(dir, ""); err != nil {
		return err
	}
	return y.SameDevice(dir, "")
}

// shard writes the folder of one shard of four. It is finished unless exit is negative.
func shard(t *testing.T, dir string, index, records, exit int) *record.Run {
	t.Helper()
	s := record.Shard{Index: index, Count: 4, Of: "run", Points: 8, Records: 8, Own: 2}
	m := record.Manifest{Scope: record.Scope{Hash: "h", Points: 2, Records: 2, Shard: &s}, Devices: []record.Device{{Key: "cpu-a"}}}
	r, err := record.Claim(dir, record.ShardFolder(s), m)
	if err != nil {
		t.Fatal(err)
	}
	word := s.String()
	r.On(record.Node{Name: "v1", Shard: &word})
	for i := range records {
		rec := record.Record{Point: record.Point{Cell: "lstm", Pass: "forward", Precision: "fp32", Hidden: i + 1, Input: 1, Batch: 1, Steps: 1, Layers: 1}, Impl: record.Impl{Name: "naive"}, Device: "cpu-a", Status: record.OK,
			Stats: &record.Stats{N: 1, Min: 1, Median: 1, Max: 1}}
		if err := r.Append(&rec); err != nil {
			t.Fatal(err)
		}
	}
	if exit >= 0 {
		if err := r.Finish(exit); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// TestStatus combines folders with the scheduler's states, and retries what failed or is missing.
func TestStatus(t *testing.T) {
	dir := t.TempDir()
	shard(t, dir, 1, 2, 0)
	running := shard(t, dir, 2, 1, -1)
	shard(t, dir, 3, 1, 130)
	s := &Submission{Scheduler: "slurm", Groups: []Group{{Shards: 4}}}
	states := func(list ...Phase) map[Place]State {
		m := map[Place]State{}
		for i, ph := range list {
			if ph != Unknown {
				m[Place{"", i + 1}] = State{Phase: ph, Job: fmt.Sprint(i), Why: map[bool]string{true: "timeout"}[ph == Failed]}
			}
		}
		return m
	}
	for _, c := range []struct {
		by   map[Place]State
		want string
	}{
		{nil, "done running failed(interrupted) missing"},
		{states(Running, Failed, Running, Queued), "done running running queued"},
		{states(Done, Unknown, Queued, Done), "done running queued missing(its job ended, but it has no folder)"},
		{states(Failed, Unknown, Failed, Failed), "done running failed(timeout) failed(timeout)"},
	} {
		list, err := s.Status(dir, c.by)
		if err != nil {
			t.Fatal(err)
		}
		var words []string
		for _, x := range list {
			w := string(x.Phase)
			if x.Why != "" {
				w += "(" + x.Why + ")"
			}
			words = append(words, w)
		}
		if got := strings.Join(words, " "); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
	if err := running.Finish(0); err != nil { // with one record of two
		t.Fatal(err)
	}
	list, err := s.Status(dir, states(Unknown, Unknown, Unknown, Queued))
	if err != nil || list[1].Why != "ended early" || list[1].Done != 1 || list[1].Planned != 2 || !slices.Equal(list[1].Nodes, []string{"v1"}) {
		t.Errorf("%+v, %v", list, err)
	}
	if !s.Again(list) || len(s.Rounds) != 1 || !slices.Equal(s.Rounds[0].Jobs[0].Shards, []int{2, 3}) {
		t.Errorf("%+v", s.Rounds)
	}
	if s.Again(list[:1]) || len(s.Rounds) != 1 {
		t.Error("what is done is submitted again")
	}
	s.Scheduler = "kubernetes" // whose folders may be elsewhere
	if list, err := s.Status(filepath.Join(dir, "nothere"), states(Done, Running)); err != nil || list[0].Phase != Done || list[1].Phase != Running || list[2].Phase != Missing {
		t.Errorf("%+v, %v", list, err)
	}
}
