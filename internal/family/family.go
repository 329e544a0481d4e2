// Package family knows the processes that this one has started, and how much processor time all of
// them used. What the machine did beyond that, other programs did.
package family

import (
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Tick is the unit in which Linux counts processor time, in seconds.
const Tick = 0.01

// A Process is one line of /proc/PID/stat.
type Process struct {
	PID, Parent int
	Name        string  // of its program, at most 15 letters
	Seconds     float64 // of processor time, that of ended children included
}

// Read reads a process of /proc, such as "self" or "4711"; false: there is none.
func Read(root fs.FS, which string) (Process, bool) {
	text, err := fs.ReadFile(root, path.Join("proc", which, "stat"))
	if err != nil {
		return Process{}, false
	}
	// pid (name) state parent …; the name may hold anything
	before, after, _ := cutLast(string(text), ")")
	id, name, _ := strings.Cut(before, " (")
	fields := strings.Fields(after)
	const parent, first, last = 1, 11, 14 // user, system, and both of ended children
	if len(fields) <= last {
		return Process{}, false
	}
	p := Process{Name: name}
	var bad error
	number := func(s string) int {
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 {
			bad = strconv.ErrSyntax
		}
		return n
	}
	p.PID, p.Parent = number(id), number(fields[parent])
	for _, f := range fields[first : last+1] {
		p.Seconds += Tick * float64(number(f))
	}
	return p, bad == nil
}

// cutLast is strings.Cut at the last separator.
func cutLast(s, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(s, separator); i >= 0 {
		return s[:i], s[i+len(separator):], true
	}
	return s, "", false
}

// All reads every process of /proc. It takes about ten microseconds for each.
func All(root fs.FS) []Process {
	entries, _ := fs.ReadDir(root, "proc")
	var list []Process
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		if p, ok := Read(root, e.Name()); ok {
			list = append(list, p)
		}
	}
	return list
}

// started are the children of this process that it told of. Those that have ended are dropped when
// they are next asked for.
var started struct {
	sync.Mutex
	pids []int
}

// Started tells of a child of this process, such as a worker or a rival.
func Started(pid int) {
	started.Lock()
	defer started.Unlock()
	started.pids = append(started.pids, pid)
}

// Seconds returns the processor time that this process, its children and theirs have used; false:
// unknown. It takes microseconds, and about ten for each process of the machine where there are
// children and the kernel does not list their own.
func Seconds(root fs.FS) (float64, bool) {
	self, ok := Read(root, "self")
	if !ok {
		return 0, false
	}
	sum := self.Seconds
	for _, p := range descendants(root, self.PID) {
		sum += p.Seconds
	}
	return sum, true
}

// descendants lists the children that Started told of and that still run, and their descendants.
func descendants(root fs.FS, self int) []Process {
	started.Lock()
	defer started.Unlock()
	var list []Process
	started.pids = slices.DeleteFunc(started.pids, func(pid int) bool {
		p, ok := Read(root, strconv.Itoa(pid))
		if !ok || p.Parent != self { // it ended; another process may have its number now
			return true
		}
		list = append(list, p)
		return false
	})
	var all []Process // read once if the kernel does not list children
	for i := 0; i < len(list); i++ {
		below, ok := children(root, list[i].PID)
		if !ok {
			if all == nil {
				all = All(root)
			}
			below = Below(all, list[i].PID)
		}
		list = append(list, below...)
	}
	return list
}

// Below returns the children of a process among all.
func Below(all []Process, pid int) []Process {
	return slices.DeleteFunc(slices.Clone(all), func(p Process) bool { return p.Parent != pid })
}

// children reads the children of a process where the kernel lists them for each thread; false: it
// does not.
func children(root fs.FS, pid int) ([]Process, bool) {
	at := path.Join("proc", strconv.Itoa(pid), "task")
	threads, err := fs.ReadDir(root, at)
	if err != nil {
		return nil, true // it has just ended
	}
	var list []Process
	for i, t := range threads {
		text, err := fs.ReadFile(root, path.Join(at, t.Name(), "children"))
		if err != nil && i == 0 {
			return nil, false
		}
		for _, word := range strings.Fields(string(text)) {
			if p, ok := Read(root, word); ok {
				list = append(list, p)
			}
		}
	}
	return list, true
}
