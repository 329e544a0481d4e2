//go:build cuda

package nvidia

/*
#include <stdint.h>
#include <string.h>

typedef struct { char bytes[128]; } identity;

// join calls ncclCommInitRank, which takes the identity by value.
static int join(uintptr_t f, uintptr_t* comm, int replicas, const char* id, int rank) {
	identity i;
	memcpy(i.bytes, id, sizeof i.bytes);
	return ((int (*)(uintptr_t*, int, identity, int))f)(comm, replicas, i, rank);
}

static const char* explain(uintptr_t f, int code) { return ((const char* (*)(int))f)(code); }
*/
import "C"

import (
	"fmt"
	"slices"
	"unsafe"

	"rnnbench/device/allreduce"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/nccl"
)

// sums is NCCL with the communicator of all replicas.
type sums struct {
	library *library
	comm    uintptr
	version string
}

// Constants of NCCL.
const (
	ncclHalf, ncclSingle, ncclBrain = 6, 7, 9
	ncclSum                         = 0
	identityBytes                   = 128
)

// join adds the GPU to a group of replicas. The first replica creates NCCL's unique id. A sum over
// the group's file, to which the others add zeros, passes it on.
func (d *gpu) join(g *allreduce.Group) error {
	handle, path, err := nccl.Open(slices.Concat(namedDirs(), libraryDirs())...)
	if err != nil {
		return err
	}
	s := &sums{library: &library{handle: handle, path: path, at: map[string]uintptr{}}}
	var version int32
	if err := s.code("ncclGetVersion", s.library.call("ncclGetVersion", address(&version))); err != nil {
		return err
	}
	s.version = fmt.Sprintf("%d.%d.%d", version/10000, version%10000/100, version%100)
	var id [identityBytes]byte
	if g.Rank() == 0 {
		if err := s.code("ncclGetUniqueId", s.library.call("ncclGetUniqueId", address(&id))); err != nil {
			return err
		}
	}
	shared := make([]float32, len(id))
	for i, b := range id {
		shared[i] = float32(b)
	}
	if err := g.Sum(shared); err != nil {
		return err
	}
	for i, v := range shared {
		id[i] = byte(v)
	}
	at := s.library.find("ncclCommInitRank")
	if at == 0 {
		return s.code("ncclCommInitRank", missing)
	}
	var comm C.uintptr_t
	code := C.join(C.uintptr_t(at), &comm, C.int(g.Replicas()), (*C.char)(unsafe.Pointer(&id[0])), C.int(g.Rank()))
	if err := s.code("ncclCommInitRank", int(code)); err != nil {
		return err
	}
	s.comm = uintptr(comm)
	d.sums, d.properties.Replicas = s, g.Replicas()
	d.properties.Libraries["nccl"] = s.version
	return nil
}

// code turns the status that an NCCL function returned into an error; 0: nil.
func (s *sums) code(name string, code int) error {
	switch code {
	case 0:
		return nil
	case missing:
		return fmt.Errorf("NCCL is unavailable: %s has no %s", s.library.path, name)
	}
	word := "no reason is known"
	if at := s.library.find("ncclGetErrorString"); at != 0 {
		word = C.GoString(C.explain(C.uintptr_t(at), C.int(code)))
	}
	return fmt.Errorf("NCCL: %s returns %d: %s", name, code, word)
}

// sum returns the calls that sum vectors over all replicas, in one launch.
func (s *sums) sum(v *driver.Sum, stream uintptr) []call {
	do := func(name string, args ...uintptr) call { return call{name, args, s.library, s.code} }
	calls := []call{do("ncclGroupStart")}
	for _, x := range v.Vectors {
		kind := map[driver.Element]uintptr{driver.Half: ncclHalf, driver.Single: ncclSingle, driver.Brain: ncclBrain}[x.Element]
		calls = append(calls, do("ncclAllReduce", uintptr(x.At), uintptr(x.At), uintptr(x.Values), kind, ncclSum, s.comm, stream))
	}
	return append(calls, do("ncclGroupEnd"))
}
