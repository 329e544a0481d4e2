package topology

import (
	"cmp"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"rnnbench/internal/cgroup"
)

// Read reads the topology of a host from the folders sys and proc of root. allowed lists the
// processors that this process may run on. Files that cannot be read count as missing.
func Read(root fs.FS, allowed []int) *Topology {
	h := host{root}
	t := &Topology{Quota: cgroup.Quota(root)}
	fast, slow := h.list("sys/devices/cpu_core/cpus"), h.list("sys/devices/cpu_atom/cpus")
	t.Silent = true
	for _, id := range allowed {
		p := Processor{ID: id, Core: id, Cluster: -1, Node: h.node(id), Socket: 0}
		if c, ok := h.first(h.of(id, "topology/thread_siblings_list")); ok {
			p.Core, t.Silent = c, false
		}
		if n, ok := h.number(h.of(id, "topology/physical_package_id")); ok {
			p.Socket, t.Silent = n, false
		}
		p.Speed = h.speed(id, fast, slow)
		var level, bytes int
		if p.Cluster, level, bytes = h.cache(id); p.Cluster >= 0 {
			t.Cache, t.Level = max(t.Cache, bytes), level
		}
		t.Processors = append(t.Processors, p)
	}
	t.join()
	t.sort()
	return t
}

// join makes one cluster of each socket if no two cores share a cache.
func (t *Topology) join() {
	shared := map[int]bool{} // clusters of at least two cores
	first := map[int]int{}   // cluster to its first core
	for _, p := range t.Processors {
		if core, ok := first[p.Cluster]; !ok {
			first[p.Cluster] = p.Core
		} else if core != p.Core && p.Cluster >= 0 {
			shared[p.Cluster] = true
		}
	}
	if len(shared) > 0 {
		return
	}
	for i := range t.Processors {
		t.Processors[i].Cluster = -1 - t.Processors[i].Socket
	}
	t.Cache, t.Level = 0, 0
}

// sort numbers the threads of each core and sorts the processors.
func (t *Topology) sort() {
	slices.SortFunc(t.Processors, func(a, b Processor) int { return cmp.Compare(a.ID, b.ID) })
	threads := map[int]int{}
	sockets, nodes, clusters := map[int]int{}, map[int]int{}, map[int]int{} // number of cores of each
	for i := range t.Processors {
		p := &t.Processors[i]
		if p.Thread = threads[p.Core]; p.Thread == 0 {
			sockets[p.Socket]++
			nodes[p.Node]++
			clusters[p.Cluster]++
		}
		threads[p.Core]++
	}
	fullest := func(cores map[int]int, a, b int) int {
		return cmp.Or(cmp.Compare(cores[b], cores[a]), cmp.Compare(a, b))
	}
	slices.SortStableFunc(t.Processors, func(a, b Processor) int {
		return cmp.Or(cmp.Compare(a.Thread, b.Thread), cmp.Compare(b.Speed, a.Speed), fullest(sockets, a.Socket, b.Socket),
			fullest(nodes, a.Node, b.Node), fullest(clusters, a.Cluster, b.Cluster), cmp.Compare(a.Core, b.Core))
	})
}

// A host is the file system of a host.
type host struct{ fs.FS }

// of returns the path of a processor's file.
func (host) of(id int, name string) string {
	return path.Join("sys/devices/system/cpu", "cpu"+strconv.Itoa(id), name)
}

// text returns the first line of a file, or "".
func (h host) text(name string) string {
	b, err := fs.ReadFile(h, name)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSpace(line)
}

// number reads a file with a number that is not negative.
func (h host) number(name string) (int, bool) {
	n, err := strconv.Atoi(h.text(name))
	return n, err == nil && n >= 0
}

// list reads a file with a list of numbers, such as "0-3,8". It returns nil if there is no such
// list.
func (h host) list(name string) []int {
	const most = 1 << 14 // more processors than any host has
	var all []int
	for word := range strings.SplitSeq(h.text(name), ",") {
		first, last, ranged := strings.Cut(word, "-")
		from, err := strconv.Atoi(first)
		to := from
		if ranged && err == nil {
			to, err = strconv.Atoi(last)
		}
		if err != nil || from < 0 || to < from || to >= most {
			return nil
		}
		for i := from; i <= to; i++ {
			all = append(all, i)
		}
	}
	return all
}

// first returns the least number of a file's list.
func (h host) first(name string) (int, bool) {
	all := h.list(name)
	if len(all) == 0 {
		return 0, false
	}
	return slices.Min(all), true
}

// node returns the memory node of a processor.
func (h host) node(id int) int {
	entries, err := fs.ReadDir(h, h.of(id, ""))
	if err != nil {
		return 0
	}
	for _, e := range entries {
		if n, ok := strings.CutPrefix(e.Name(), "node"); ok {
			if n, err := strconv.Atoi(n); err == nil {
				return n
			}
		}
	}
	return 0
}

// speed returns the relative speed of a core of a hybrid: the capacity that the system reports or,
// without one, 2 for fast and 1 for slow kinds of cores, as on Intel's hybrids.
func (h host) speed(id int, fast, slow []int) int {
	switch n, ok := h.number(h.of(id, "cpu_capacity")); {
	case ok:
		return n
	case len(slow) == 0 || len(fast) == 0:
		return 0
	case slices.Contains(slow, id):
		return 1
	}
	return 2
}

// cache returns the last cache that a processor shares, with its level and size in bytes. It is
// named by the lowest processor that shares it; -1: there is none.
func (h host) cache(id int) (cluster, level, bytes int) {
	cluster = -1
	for i := range 16 {
		dir := h.of(id, "cache/index"+strconv.Itoa(i))
		n, ok := h.number(path.Join(dir, "level"))
		if !ok {
			break
		}
		if first, ok := h.first(path.Join(dir, "shared_cpu_list")); ok && n >= 2 && n > level {
			cluster, level, bytes = first, n, sizeOf(h.text(path.Join(dir, "size")))
		}
	}
	return cluster, level, bytes
}

// sizeOf parses a size such as "32768K"; 0: invalid.
func sizeOf(text string) int {
	shift := 0
	for unit, s := range map[string]int{"K": 10, "M": 20, "G": 30} {
		if rest, ok := strings.CutSuffix(text, unit); ok {
			text, shift = rest, s
		}
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > 1<<30 {
		return 0
	}
	return n << shift
}
