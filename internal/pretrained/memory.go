package pretrained

import (
	"sync"

	"github.com/pollen-ml/pollen/internal/featurecache"
)

// maxMemory is the maximum number of bytes of features that a File keeps in memory.
const maxMemory = 256 << 20

// memory keeps features, which several phases of a run need. It drops all of them when they would
// exceed maxMemory.
type memory struct {
	mu    sync.Mutex
	rows  map[featurecache.Key][]float32
	bytes int
}

// get copies the features of a key, and reports whether there are any.
func (m *memory) get(key featurecache.Key, to []float32) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	row, ok := m.rows[key]
	return ok && copy(to, row) == len(to)
}

// put keeps a copy of the features of a key.
func (m *memory) put(key featurecache.Key, row []float32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.bytes+4*len(row) > maxMemory || m.rows == nil {
		m.rows, m.bytes = map[featurecache.Key][]float32{}, 0
	}
	if _, known := m.rows[key]; !known {
		m.bytes += 4 * len(row)
	}
	m.rows[key] = append([]float32{}, row...)
}
