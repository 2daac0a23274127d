package cuda

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/cuda/kernels"
)

// ptxFile is a file of PTX. The driver compiles each of its kernels as a separate module, when a
// workload first needs it, so that a program waits only for the kernels that it uses. The driver
// caches what it has compiled, by the text of the PTX, in the user's directory (CUDA C++
// Programming Guide, just-in-time compilation: CUDA_CACHE_PATH, CUDA_CACHE_MAXSIZE,
// CUDA_CACHE_DISABLE). A later program with the same kernels starts faster.
type ptxFile struct {
	name         string
	capability   int  // the lowest that it runs on, 10 major + minor
	archSpecific bool // whether it runs only on that capability, as sm_90a does
	minCUDA      int  // the first CUDA whose driver reads this version of PTX, 1000 major + 10 minor
	symbols      []string
	entries      map[string]kernels.Entry // the kernels, by symbol
	head         string                   // the file's text before the first kernel, which every kernel needs
}

// ptxFiles returns all files of PTX, including those that programs have added.
func ptxFiles() ([]ptxFile, error) {
	files, err := kernels.Files()
	if err != nil {
		return nil, errors.Wrap(err, "cuda")
	}
	var all []ptxFile
	for _, f := range files {
		reads, err := minCUDAFor(f.Version)
		if err != nil {
			return nil, errors.WithMessage(err, "cuda: "+f.Name)
		}
		s := ptxFile{name: f.Name, capability: f.Capability, archSpecific: f.Exact, minCUDA: reads, head: f.Head, entries: map[string]kernels.Entry{}}
		for _, e := range f.Entries {
			s.symbols = append(s.symbols, e.Name)
			s.entries[e.Name] = e
		}
		all = append(all, s)
	}
	return all, nil
}

// minCUDAFor returns the first CUDA, 1000 major + 10 minor, whose driver reads a version of PTX, 10
// major + minor. It follows the release history in the PTX ISA: up to PTX 8.5, of CUDA 12.5, the
// minor versions agree; CUDA 12.6 brought no new PTX; PTX 9.0 came with CUDA 13.0.
func minCUDAFor(version int) (int, error) {
	switch {
	case 70 <= version && version <= 78, 80 <= version && version <= 85, 90 <= version && version <= 91:
		return 1000*(version/10+4) + 10*(version%10), nil
	case 86 <= version && version <= 88:
		return 12010 + 10*(version%10), nil
	}
	return 0, errors.Errorf("PTX %d.%d is not in the table of CUDA versions", version/10, version%10)
}

// selectKernels returns, for each kernel, the file for the highest capability that the GPU has and
// whose PTX its driver reads.
func selectKernels(sources []ptxFile, capability, cuda int) map[string]*ptxFile {
	chosen := map[string]*ptxFile{}
	for i := range sources {
		s := &sources[i]
		if s.minCUDA > cuda || s.capability > capability || s.archSpecific && s.capability != capability {
			continue
		}
		for _, symbol := range s.symbols {
			if best := chosen[symbol]; best == nil || best.capability < s.capability {
				chosen[symbol] = s
			}
		}
	}
	return chosen
}

// variant names one of the two programs that a kernel is compiled to. With pdl, the kernel may
// begin before the one that it follows has ended, and first waits for that one (pdl.go).
type variant struct {
	symbol string
	pdl    bool
}
