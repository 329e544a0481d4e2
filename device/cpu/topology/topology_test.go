package topology

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// A cpu is a processor of an invented machine.
type cpu struct {
	siblings, sharers string // processors of its core and of its last cache
	socket, node      int
	capacity          int // 0: no file
}

// tree returns the files of processors.
func tree(size string, cpus []cpu, more map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	put := func(name, text string) { m[name] = &fstest.MapFile{Data: []byte(text + "\n")} }
	for id, c := range cpus {
		dir := fmt.Sprintf("sys/devices/system/cpu/cpu%d/", id)
		put(dir+"topology/thread_siblings_list", c.siblings)
		put(dir+"topology/physical_package_id", strconv.Itoa(c.socket))
		put(dir+fmt.Sprintf("node%d/cpulist", c.node), "")
		put(dir+"cache/index0/level", "1")
		put(dir+"cache/index0/shared_cpu_list", c.siblings)
		put(dir+"cache/index1/level", "2")
		put(dir+"cache/index1/size", "512K")
		put(dir+"cache/index1/shared_cpu_list", c.siblings)
		if c.sharers != "" {
			put(dir+"cache/index2/level", "3")
			put(dir+"cache/index2/size", size)
			put(dir+"cache/index2/shared_cpu_list", c.sharers)
		}
		if c.capacity > 0 {
			put(dir+"cpu_capacity", strconv.Itoa(c.capacity))
		}
	}
	for name, text := range more {
		put(name, text)
	}
	return m
}

// to returns the numbers from 0 to n-1.
func to(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

// epyc returns a machine with eight clusters of eight cores.
func epyc() (cpus []cpu) {
	for i := range 64 {
		cpus = append(cpus, cpu{siblings: strconv.Itoa(i), sharers: fmt.Sprintf("%d-%d", i/8*8, i/8*8+7)})
	}
	return cpus
}

// twoSockets returns a machine with 32 cores a socket and two threads a core: 0 and 64 are the
// first core's.
func twoSockets() (cpus []cpu) {
	for i := range 128 {
		core := i % 64
		s := core / 32
		cpus = append(cpus, cpu{fmt.Sprintf("%d,%d", core, core+64), fmt.Sprintf("%d-%d,%d-%d", 32*s, 32*s+31, 32*s+64, 32*s+95), s, s, 0})
	}
	return cpus
}

// hybrid returns a machine with two fast cores of two threads each, 0 to 3, four slow ones, and one
// cache.
func hybrid(capacity bool) (cpus []cpu) {
	for i := range 8 {
		c := cpu{siblings: fmt.Sprintf("%d-%d", i/2*2, i/2*2+1), sharers: "0-7", capacity: 1024}
		if i >= 4 {
			c.siblings, c.capacity = strconv.Itoa(i), 600
		}
		if !capacity {
			c.capacity = 0
		}
		cpus = append(cpus, c)
	}
	return cpus
}

// TestMachines reads machines of many kinds.
func TestMachines(t *testing.T) {
	for _, test := range machines() {
		t.Run(test.name, func(t *testing.T) {
			got := Read(test.fs, test.allowed)
			if got.String() != test.text {
				t.Errorf("it is %s\nwant %s", got, test.text)
			}
			if n := got.Default(); n != test.workers {
				t.Errorf("%d workers by default, want %d", n, test.workers)
			}
			ids := func(seats []int) (all []int) {
				for _, i := range seats {
					all = append(all, got.Processors[i].ID)
				}
				return all
			}
			if filled := ids(to(len(got.Processors))); !slices.Equal(filled[:len(test.filled)], test.filled) {
				t.Errorf("filled: %v, want %v", filled, test.filled)
			}
			if seats := ids(got.Seats(test.n)); len(seats) < len(test.seats) || !slices.Equal(seats[:len(test.seats)], test.seats) {
				t.Errorf("seats: %v, want %v", seats, test.seats)
			}
			if c := got.Clusters(test.n); !slices.Equal(c, test.clusters) {
				t.Errorf("clusters: %v, want %v", c, test.clusters)
			}
		})
	}
}

// A machine is a tree of /sys with the expected topology.
type machine struct {
	name     string
	fs       fstest.MapFS
	allowed  []int
	text     string
	workers  int   // by default
	filled   []int // the first processors to use
	n        int   // workers
	seats    []int // processors of the first workers
	clusters []int // of n workers
}

// machines range from one core to two sockets, with and without clusters, masks and quotas.
func machines() []machine {
	two := []cpu{{siblings: "0", sharers: "0-1"}, {siblings: "1", sharers: "0-1"}}
	return []machine{
		{
			name: "one core", fs: tree("8192K", []cpu{{siblings: "0", sharers: "0"}}, nil), allowed: to(1),
			text: "1 core", workers: 1, filled: to(1), n: 1, seats: to(1), clusters: []int{1},
		}, {
			name: "two cores", fs: tree("33792K", two, nil), allowed: to(2),
			text: "2 cores, one cluster that shares 33 MiB of L3", workers: 2, filled: to(2), n: 2, seats: to(2), clusters: []int{2},
		}, {
			name: "64 cores in 8 clusters", fs: tree("32768K", epyc(), nil), allowed: to(64),
			text: "64 cores, 8 clusters of 8 cores that share 32 MiB of L3", workers: 64, filled: to(64), n: 20, seats: to(20), clusters: []int{8, 8, 4},
		}, {
			name: "two sockets with two threads a core", fs: tree("48M", twoSockets(), nil), allowed: to(128),
			text:    "2 sockets, 2 NUMA nodes, 64 cores with 2 threads each, 2 clusters of 32 cores that share 48 MiB of L3",
			workers: 128, filled: to(128), n: 128, seats: []int{0, 64, 1, 65}, clusters: []int{64, 64},
		}, {
			name: "half of its threads", fs: tree("48M", twoSockets(), nil), allowed: to(128),
			text:    "2 sockets, 2 NUMA nodes, 64 cores with 2 threads each, 2 clusters of 32 cores that share 48 MiB of L3",
			workers: 128, filled: to(64), n: 64, seats: to(64), clusters: []int{32, 32},
		}, {
			name: "fast and slow cores by capacity", fs: tree("24M", hybrid(true), nil), allowed: to(8),
			text: "6 cores with 8 threads in all, 2 of them fast, one cluster that shares 24 MiB of L3", workers: 8,
			filled: []int{0, 2, 4, 5, 6, 7, 1, 3}, n: 7, seats: []int{0, 1, 2, 4, 5, 6, 7}, clusters: []int{7},
		}, {
			name: "fast and slow cores by kind", allowed: to(8),
			fs:   tree("24M", hybrid(false), map[string]string{"sys/devices/cpu_core/cpus": "0-3", "sys/devices/cpu_atom/cpus": "4-7"}),
			text: "6 cores with 8 threads in all, 2 of them fast, one cluster that shares 24 MiB of L3", workers: 8,
			filled: []int{0, 2, 4, 5, 6, 7, 1, 3}, n: 2, seats: []int{0, 2}, clusters: []int{2},
		}, {
			name: "no files", fs: fstest.MapFS{}, allowed: []int{3, 5},
			text: "2 cores, no more is known", workers: 2, filled: []int{3, 5}, n: 2, seats: []int{3, 5}, clusters: []int{2},
		}, {
			name: "nothing allowed is known", fs: fstest.MapFS{}, text: "unknown", workers: 1, n: 4, clusters: []int{4},
		}, {
			name: "no last cache", fs: tree("", []cpu{{siblings: "0"}, {siblings: "1"}, {siblings: "2", socket: 1}}, nil), allowed: to(3),
			text: "2 sockets, 3 cores, 2 clusters of 1 to 2 cores", workers: 3, filled: to(3), n: 3, seats: to(3), clusters: []int{2, 1},
		}, {
			// of the first cluster only 0, 1 and 80 are allowed; 80 is a second thread whose first
			// one is not allowed
			name: "a mask with holes", fs: tree("48M", twoSockets(), nil), allowed: []int{0, 1, 33, 35, 99, 80, 100},
			text:    "2 sockets, 2 NUMA nodes, 6 cores with 7 threads in all, 2 clusters of 3 cores that share 48 MiB of L3",
			workers: 7, filled: []int{0, 1, 80, 33, 35, 100, 99}, n: 7, seats: []int{0, 1, 80, 33, 35, 99, 100}, clusters: []int{3, 4},
		}, {
			name: "the fullest cluster first", fs: tree("32768K", epyc(), nil), allowed: []int{1, 2, 16, 17, 18, 19, 40},
			text:    "7 cores, 3 clusters of 1 to 4 cores that share 32 MiB of L3",
			workers: 7, filled: []int{16, 17, 18, 19, 1, 2, 40}, n: 4, seats: []int{16, 17, 18, 19}, clusters: []int{4},
		}, {
			name: "more workers than processors", fs: tree("33792K", two, nil), allowed: to(2),
			text: "2 cores, one cluster that shares 33 MiB of L3", workers: 2, filled: to(2), n: 5, clusters: []int{5},
		}, {
			name: "a quota", allowed: to(64),
			fs: tree("32768K", epyc(), map[string]string{
				"proc/self/cgroup": "0::/pods/a", "sys/fs/cgroup/pods/cpu.max": "450000 100000", "sys/fs/cgroup/pods/a/cpu.max": "max 100000",
			}),
			text: "64 cores, 8 clusters of 8 cores that share 32 MiB of L3, a quota of 4.5 processors", workers: 4, filled: to(4), n: 4, seats: to(4), clusters: []int{4},
		}, {
			name: "a quota of old control groups", allowed: to(2),
			fs:   tree("33792K", two, map[string]string{"proc/self/cgroup": "4:cpu,cpuacct:/x", "sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us": "50000", "sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us": "100000"}),
			text: "2 cores, one cluster that shares 33 MiB of L3, a quota of 0.5 processors", workers: 1, filled: to(2), n: 1, seats: to(1), clusters: []int{1},
		},
	}
}

// TestPart: replicas get whole cores near each other, and each its share of a quota.
func TestPart(t *testing.T) {
	all := Read(tree("48M", twoSockets(), nil), to(128))
	all.Quota = 6
	for rank := range 4 {
		part := all.Part(rank, 4)
		if got := part.Cores(); got != 16 || len(part.Processors) != 32 || part.Processors[15].Thread != 0 || part.Processors[16].Thread != 1 || part.Quota != 1.5 {
			t.Errorf("part %d: %s", rank, part)
		}
		for _, p := range part.Processors {
			if p.Socket != rank/2 {
				t.Errorf("part %d has processor %d of socket %d", rank, p.ID, p.Socket)
			}
		}
	}
	few := Read(fstest.MapFS{}, to(2))
	for rank := range 3 {
		if n := few.Part(rank, 3).Default(); n != 1 {
			t.Errorf("part %d of three has %d workers", rank, n)
		}
	}
}

// TestAnyTree reads random trees: every allowed processor is used once, and nothing panics.
func TestAnyTree(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 34))
	texts := []string{"", "0", "7", "-1", "0-3", "3-0", "0,2,4-6", "x", "9999999999999999999", "0-99999999", "max", "K", "1K", "999999999999G", "\x00"}
	for range 500 {
		files := tree("1024K", epyc()[:8], nil)
		for name := range files {
			switch rng.IntN(3) {
			case 0:
				delete(files, name)
			case 1:
				files[name] = &fstest.MapFile{Data: []byte(texts[rng.IntN(len(texts))])}
			}
		}
		files["proc/self/cgroup"] = &fstest.MapFile{Data: []byte(strings.Repeat(texts[rng.IntN(len(texts))]+":", rng.IntN(4)))}
		top := Read(files, to(8))
		_ = top.String()
		for n := range 9 {
			var seen []int
			for _, i := range top.Seats(n) {
				seen = append(seen, top.Processors[i].ID)
			}
			slices.Sort(seen)
			if len(slices.Compact(seen)) != n {
				t.Fatalf("%d workers sit on %v", n, seen)
			}
			sum := 0
			for _, c := range top.Clusters(n) {
				sum += c
			}
			if sum != n {
				t.Fatalf("clusters of %d workers have %d", n, sum)
			}
		}
	}
}
