//go:build cuda

package nvidia

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// namedDirs lists the folders of $RNNBENCH_CUDA_LIBS, which are searched before the system's.
func namedDirs() []string { return filepath.SplitList(os.Getenv("RNNBENCH_CUDA_LIBS")) }

func libraryDirs() []string {
	dirs := namedDirs()
	for _, root := range []string{os.Getenv("CUDA_HOME"), os.Getenv("CUDA_PATH"), "/usr/local/cuda"} {
		if root != "" {
			dirs = append(dirs, filepath.Join(root, "lib64"))
		}
	}
	return dirs
}

// A library is a shared object loaded at run time.
type library struct {
	handle uintptr
	path   string
	mu     sync.Mutex
	at     map[string]uintptr
}

// loadLibrary loads the first of names that it finds; callers name the newest first.
func loadLibrary(names ...string) (*library, error) {
	for _, dir := range slices.Concat(namedDirs(), []string{""}, libraryDirs()) {
		for _, name := range names {
			path := filepath.Join(dir, name)
			if handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL); err == nil {
				return &library{handle: handle, path: path, at: map[string]uintptr{}}, nil
			}
		}
	}
	return nil, fmt.Errorf("none of %s was found on this machine", strings.Join(names, ", "))
}

// find returns the address of a function; 0: the library does not have it.
func (l *library) find(name string) uintptr {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, ok := l.at[name]
	if !ok {
		at, _ = purego.Dlsym(l.handle, name)
		l.at[name] = at
	}
	return at
}

// call calls a function and returns its status; missing if the library does not have it.
func (l *library) call(name string, args ...uintptr) int {
	at := l.find(name)
	if at == 0 {
		return missing
	}
	code, _, _ := purego.SyscallN(at, args...)
	return int(int32(code))
}

// missing is a status that no library returns.
const missing = -1 << 20

// address returns p as an address for a library. It forces *p onto the heap, since Go moves stacks.
// The caller must keep *p alive until the library is done.
func address[T any](p *T) uintptr {
	onHeap(unsafe.Pointer(p))
	return uintptr(unsafe.Pointer(p))
}

// onHeap does nothing. As the compiler cannot know that, its argument escapes to the heap.
var onHeap = func(unsafe.Pointer) {}

// text returns the text of a C string.
func text(b []byte) string {
	s, _, _ := strings.Cut(string(b), "\x00")
	return s
}
