package allreduce

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Join makes the caller the replica of this rank, from 0, among those that share a file of
// Create's.
func Join(path string, rank, replicas int) (*Group, error) {
	if replicas < 1 || replicas > MostReplicas || rank < 0 || rank >= replicas {
		return nil, fmt.Errorf("allreduce: replica %d of %d: choose 1 to N of at most %d", rank+1, replicas, MostReplicas)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("allreduce: %w", err)
	}
	g := &Group{rank: rank, replicas: replicas, file: f}
	if err := g.join(); err != nil {
		return nil, errors.Join(fmt.Errorf("allreduce: %s cannot join: %w", g.name(rank), err), f.Close())
	}
	return g, nil
}

func (g *Group) join() error {
	info, err := g.file.Stat()
	if err != nil {
		return err
	}
	if info.Size() != int64(size(g.replicas)) {
		return fmt.Errorf("the shared file has %d bytes, not the %d for %d replicas", info.Size(), size(g.replicas), g.replicas)
	}
	lock := g.lock(g.rank)
	if err := unix.FcntlFlock(g.file.Fd(), unix.F_OFD_SETLK, &lock); err != nil {
		return fmt.Errorf("another process is that replica: %w", err)
	}
	if g.memory, err = unix.Mmap(int(g.file.Fd()), 0, int(info.Size()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return err
	}
	if h := g.header(g.rank); !h.joined.CompareAndSwap(0, 1) {
		return errors.Join(errors.New("that replica has joined before"), g.unmap())
	}
	return nil
}

// lock returns the lock of a replica: byte number rank of the file. It belongs to the open file, so
// the system drops it whenever and however the process ends.
func (g *Group) lock(rank int) unix.Flock_t {
	return unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: int64(rank), Len: 1}
}

// alive reports whether a replica holds its lock.
func (g *Group) alive(rank int) (bool, error) {
	lock := g.lock(rank)
	if err := unix.FcntlFlock(g.file.Fd(), unix.F_OFD_GETLK, &lock); err != nil {
		return false, err
	}
	return lock.Type != unix.F_UNLCK, nil
}

// yield lets the system run another thread on this processor.
func yield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

func (g *Group) unmap() error {
	if g.memory == nil {
		return nil
	}
	memory := g.memory
	g.memory = nil
	return unix.Munmap(memory)
}
