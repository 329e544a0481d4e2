package around

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"rnnbench/internal/family"
)

// A Run is another run of rnnbench on this machine.
type Run struct {
	PID  int
	Verb string // such as "sweep"
}

func (r Run) String() string { return fmt.Sprintf("rnnbench %s, process %d", r.Verb, r.PID) }

// verbs are the commands of rnnbench that keep the machine busy.
var verbs = []string{"sweep", "tune", "reproduce", "train", "verify", "doctor", "compare"}

// Runs lists the other runs of rnnbench on the machine: no processes that this one started, nor those
// that started it, nor workers of other runs. It reads every process of the machine, which takes
// milliseconds, but not again within ten seconds.
func (r *Reader) Runs() []Run {
	const fresh = 10 * time.Second
	if r == nil {
		return nil
	}
	if now := r.now(); r.looked.IsZero() || now.Sub(r.looked) > fresh {
		r.runs, r.looked = r.look(), now
	}
	return r.runs
}

// look looks for other runs.
func (r *Reader) look() []Run {
	self, ok := family.Read(r.root, "self")
	if !ok {
		return nil
	}
	parent, found := map[int]int{}, map[int]string{}
	for _, p := range family.All(r.root) {
		parent[p.PID] = p.Parent
		if v := verbOf(r.root, p.PID); v != "" {
			found[p.PID] = v
		}
	}
	// above calls f for each process above pid, until f returns true.
	above := func(pid int, f func(int) bool) bool {
		for i := 0; i < 64 && pid > 0; i++ { // a line of ancestors that was read while it changed may have a circle
			if pid = parent[pid]; f(pid) {
				return true
			}
		}
		return false
	}
	var list []Run
	for pid, verb := range found {
		kin := pid == self.PID || above(pid, func(p int) bool { return p == self.PID }) || above(self.PID, func(p int) bool { return p == pid })
		part := above(pid, func(p int) bool { return p != pid && found[p] != "" }) // of a run that is listed itself
		if !kin && !part {
			list = append(list, Run{pid, verb})
		}
	}
	slices.SortFunc(list, func(a, b Run) int { return a.PID - b.PID })
	return list
}

// verbOf returns the verb of a run of rnnbench; "": the process is no such run.
func verbOf(root fs.FS, pid int) string {
	text, err := fs.ReadFile(root, path.Join("proc", strconv.Itoa(pid), "cmdline"))
	if err != nil {
		return ""
	}
	args := strings.Split(string(text), "\x00")
	if name := path.Base(args[0]); name != "rnnbench" {
		return ""
	}
	for _, a := range args[1:] {
		if slices.Contains(verbs, a) {
			return a
		}
	}
	return ""
}
