package cluster

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"unicode"
)

// Kubernetes holds the options of jobs on Kubernetes: an Indexed Job for each group, and a Job that
// merges.
type Kubernetes struct {
	Image     string   `json:"image"`
	Namespace string   `json:"namespace"` // "": that of kubectl's context
	Claim     string   `json:"claim"`     // PersistentVolumeClaim for the results
	Storage   string   `json:"storage"`   // size of a claim that the manifest creates; "": it exists already
	Seconds   int64    `json:"seconds"`   // time limit of a shard; 0: none
	Limits    []string `json:"limits"`    // such as nvidia.com/gpu=1
	Selectors []string `json:"selectors"` // node selectors, for all groups
	Shared    bool     `json:"shared"`    // several shards may share a node
}

// Mount is the path where pods see the volume for results.
const Mount = "/results"

//go:embed manifest.yaml.tmpl
var manifestText string

var manifest = template.Must(template.New("manifest").Funcs(template.FuncMap{"json": asJSON, "literal": literal}).Parse(manifestText))

// asJSON writes a value as JSON on one line, which YAML accepts.
func asJSON(v any) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// literal makes Kubernetes take the words of a command as they are: in these, $(NAME) stands for a variable
// and $$ for $.
func literal(words ...string) []string {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = strings.ReplaceAll(w, "$", "$$")
	}
	return list
}

// Command implements Scheduler.
func (*Kubernetes) Command() string { return "kubectl" }

// podJob is a group's data for the template.
type podJob struct {
	Name, Merge string
	Group       string
	Completions int
	Args        []string
	MergeArgs   []string
	Selector    map[string]string
}

// Texts implements Scheduler.
func (k *Kubernetes) Texts(s *Submission, n int) ([]Text, error) {
	x := struct {
		*Kubernetes
		S      *Submission
		Mount  string
		First  bool
		Limits map[string]string
		Alone  bool // no other shard on the node
		Jobs   []podJob
	}{Kubernetes: k, S: s, Mount: Mount, First: n == 0, Limits: pairs(k.Limits), Alone: !k.Shared && len(k.Limits) == 0}
	for _, j := range s.Rounds[n].Jobs {
		g := s.group(j.Group)
		folder := path.Join(s.Dir, g.Name)
		p := podJob{
			Name: s.jobName(g.Name, n, ""), Merge: s.jobName(g.Name, n, mergeWord), Group: g.Name, Completions: len(j.Shards),
			Args: s.measure(g.Name, folder), MergeArgs: literal("merge", folder), Selector: pairs(k.Selectors),
		}
		if len(j.Shards) < g.Shards { // the index in the array is not the shard's number
			p.Args = append(p.Args, "--shard", fmt.Sprintf("%s/%d", commas(j.Shards), g.Shards))
		}
		p.Args = literal(p.Args...)
		if key, value, ok := strings.Cut(g.Request, "="); ok {
			p.Selector[key] = value
		}
		x.Jobs = append(x.Jobs, p)
	}
	var b strings.Builder
	err := manifest.Execute(&b, x)
	return []Text{{k.file(n), b.String()}}, err
}

// file is the name of the manifest of round n.
func (*Kubernetes) file(n int) string {
	if n > 0 {
		return fmt.Sprintf("manifest-retry-%d.yaml", n)
	}
	return "manifest.yaml"
}

func commas(list []int) string {
	var words []string
	for _, i := range list {
		words = append(words, strconv.Itoa(i))
	}
	return strings.Join(words, ",")
}

// pairs reads words such as KEY=VALUE.
func pairs(list []string) map[string]string {
	m := map[string]string{}
	for _, w := range list {
		key, value, _ := strings.Cut(w, "=")
		m[key] = value
	}
	return m
}

// CheckWord checks the value of a flag that is a name, an amount or an image: it has no spaces, line breaks
// or other characters that cannot be seen.
func CheckWord(flag, value string) error {
	if strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) }) {
		return fmt.Errorf("--%s: %q has a space or a line break: write one word", flag, value)
	}
	return nil
}

// CheckPair checks a word such as KEY=VALUE of a flag.
func CheckPair(flag, word, example string) error {
	if key, value, ok := strings.Cut(word, "="); !ok || key == "" || value == "" || CheckWord(flag, word) != nil {
		return fmt.Errorf("--%s: %q is not KEY=VALUE: write one such as %s", flag, word, example)
	}
	return nil
}

// Seconds reads a time limit such as 2h; an empty one is 0.
func Seconds(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	d, err := limit(text)
	if err == nil && d < 1e9 {
		err = errors.New("--time: a shard needs at least a second")
	}
	return int64(d.Seconds()), err
}

// kubectl adds the submission's namespace to arguments of kubectl.
func (k *Kubernetes) kubectl(args ...string) []string {
	if k.Namespace != "" {
		args = append(args, "--namespace="+k.Namespace)
	}
	return args
}

// Start implements Scheduler. Kubectl creates all objects of a manifest or says what failed.
func (k *Kubernetes) Start(run Runner, s *Submission, n int, dir string) error {
	if _, err := run("kubectl", k.kubectl("apply", "--filename="+filepath.Join(dir, k.file(n)))...); err != nil {
		return err
	}
	r := &s.Rounds[n]
	var merges []string
	for i, j := range r.Jobs {
		r.Jobs[i].ID = s.jobName(j.Group, n, "")
		merges = append(merges, s.jobName(j.Group, n, mergeWord))
	}
	r.Merge = strings.Join(merges, " ")
	return nil
}

// jobStatus and podList are the fields that States reads of the API's objects.
type jobStatus struct {
	Status struct {
		CompletedIndexes string
		FailedIndexes    string
		Conditions       []struct{ Type, Status, Reason string }
	}
}

type podList struct {
	Items []struct {
		Metadata struct{ Annotations map[string]string }
		Spec     struct{ NodeName string }
		Status   struct{ Phase string }
	}
}

// indexOf is the annotation of a pod that has its index in the Indexed Job.
const indexOf = "batch.kubernetes.io/job-completion-index"

// States implements Scheduler.
func (k *Kubernetes) States(run Runner, s *Submission) (map[Place]State, error) {
	all := map[Place]State{}
	for _, r := range s.Rounds {
		for _, j := range r.Jobs {
			if j.ID == "" {
				continue
			}
			if err := k.states(run, j, all); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

func (k *Kubernetes) states(run Runner, j Job, all map[Place]State) error {
	get := func(v any, args ...string) error {
		out, err := run("kubectl", k.kubectl(append(append([]string{"get"}, args...), "--output=json", "--ignore-not-found")...)...)
		if err == nil && strings.TrimSpace(out) != "" {
			err = json.Unmarshal([]byte(out), v)
		}
		return err
	}
	set := func(index int, state State) {
		if index >= 0 && index < len(j.Shards) {
			state.Job = j.ID + "-" + strconv.Itoa(index)
			all[Place{j.Group, j.Shards[index]}] = state
		}
	}
	var job jobStatus
	var pods podList
	if err := errors.Join(get(&job, "job", j.ID), get(&pods, "pods", "--selector=job-name="+j.ID)); err != nil {
		return err
	}
	for _, p := range pods.Items {
		index, err := strconv.Atoi(p.Metadata.Annotations[indexOf])
		if err != nil {
			continue
		}
		switch p.Status.Phase {
		case "Pending":
			set(index, State{Phase: Queued, Node: p.Spec.NodeName})
		case "Running":
			set(index, State{Phase: Running, Node: p.Spec.NodeName})
		}
	}
	over := ""
	for _, c := range job.Status.Conditions {
		if c.Type == "Failed" && c.Status == "True" {
			over = c.Reason
		}
	}
	completed, failed := indexes(job.Status.CompletedIndexes), indexes(job.Status.FailedIndexes)
	for i := range j.Shards {
		at := Place{j.Group, j.Shards[i]}
		switch {
		case slices.Contains(completed, i):
			set(i, State{Phase: Done})
		case slices.Contains(failed, i):
			set(i, State{Phase: Failed, Why: "failed"})
		case over != "" && all[at].Phase == Unknown:
			set(i, State{Phase: Failed, Why: over})
		}
	}
	return nil
}

// indexes reads a list such as 1,3-5.
func indexes(text string) []int {
	var list []int
	for word := range strings.SplitSeq(text, ",") {
		first, last, ok := strings.Cut(word, "-")
		if !ok {
			last = first
		}
		a, bad := strconv.Atoi(first)
		b, worse := strconv.Atoi(last)
		for i := a; bad == nil && worse == nil && i <= b; i++ {
			list = append(list, i)
		}
	}
	return list
}

// Check checks the options against submission s, and names the claim that Storage creates.
func (k *Kubernetes) Check(s *Submission) error {
	switch {
	case k.Image == "":
		return errors.New("the container image is missing: add --image IMAGE, which must hold rnnbench")
	case k.Claim == "" && k.Storage == "":
		return errors.New("a volume for the results is missing: add --claim NAME for an existing one, or --storage SIZE to create one")
	case k.Claim == "":
		k.Claim = s.Name
	}
	for _, x := range [][2]string{{"image", k.Image}, {"namespace", k.Namespace}, {"claim", k.Claim}, {"storage", k.Storage}, {"program", s.Program}} {
		if err := CheckWord(x[0], x[1]); err != nil {
			return err
		}
	}
	for _, w := range k.Limits {
		if err := CheckPair("limit", w, "nvidia.com/gpu=1"); err != nil {
			return err
		}
	}
	for _, w := range k.Selectors {
		if err := CheckPair("node-selector", w, "disk=ssd"); err != nil {
			return err
		}
	}
	for _, g := range s.Groups {
		if g.Request == "" {
			continue
		}
		if err := CheckPair("group", g.Request, fmt.Sprintf("%s=%d:nvidia.com/gpu.product=H100", g.Name, g.Shards)); err != nil {
			return err
		}
	}
	return nil
}
