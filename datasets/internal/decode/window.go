package decode

import "io"

// window reads short pieces of a source at any offset through a buffer, so that walking along the
// parts of a file takes few calls.
type window struct {
	source io.ReaderAt
	buffer []byte
	from   int64 // offset of the buffer
}

const windowSize = 4096

// at returns n bytes at an offset, valid until the next call, or nil if the source has fewer.
func (w *window) at(offset int64, n int) []byte {
	if offset < 0 || n < 0 {
		return nil
	}
	if offset < w.from || offset+int64(n) > w.from+int64(len(w.buffer)) {
		if need := max(n, windowSize); cap(w.buffer) < need {
			w.buffer = make([]byte, need)
		}
		got, _ := w.source.ReadAt(w.buffer[:cap(w.buffer)], offset) // an error comes with fewer bytes
		w.from, w.buffer = offset, w.buffer[:got]
	}
	from := offset - w.from
	if from+int64(n) > int64(len(w.buffer)) {
		return nil
	}
	return w.buffer[from : from+int64(n)]
}
