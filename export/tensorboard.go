package export

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image/png"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pkg/errors"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/internal/rundir"
)

// TensorBoard writes a run to a new directory as an event file that TensorBoard reads: the scalars
// loss, accuracy, learning_rate and temperature by step, a histogram of each parameter for each
// sample, and the figures in the run's directory. If a gathered run has several parts, or a run
// several chains, tags have the number of the part or the chain. at is the time that all events
// get, since runs do not record times.
func TensorBoard(run *bayes.Run, dir string, at time.Time) error {
	return intoNew(dir, func(dir string) error {
		to, err := os.Create(filepath.Join(dir, eventFile(at)))
		if err != nil {
			return errors.Wrap(err, "export: tensorboard")
		}
		defer to.Close()
		w := newEvents(to, at)
		if err := w.run(run); err != nil {
			return err
		}
		return errors.Wrap(to.Close(), "export: tensorboard")
	})
}

// eventFile returns the name of an event file, by which TensorBoard finds it.
func eventFile(at time.Time) string {
	return fmt.Sprintf("events.out.tfevents.%010d.pollen", max(0, at.Unix()))
}

// events writes an event file: records of protocol buffers, with checksums. Sources: TensorFlow's
// record_writer.cc, event.proto and summary.proto.
type events struct {
	to  io.Writer
	at  float64 // seconds since 1970
	err error   // the first one
}

func newEvents(to io.Writer, at time.Time) *events {
	w := &events{to: to, at: float64(at.UnixNano()) / 1e9}
	w.event(0, bytesField(3, []byte("brain.Event:2")))
	return w
}

// event writes an event with one more field.
func (w *events) event(step int, field []byte) {
	record := protowire.AppendTag(nil, 1, protowire.Fixed64Type)
	record = protowire.AppendFixed64(record, math.Float64bits(w.at))
	record = protowire.AppendTag(record, 2, protowire.VarintType)
	record = append(protowire.AppendVarint(record, uint64(step)), field...)
	length := binary.LittleEndian.AppendUint64(nil, uint64(len(record)))
	framed := binary.LittleEndian.AppendUint32(slices.Clone(length), maskedChecksum(length))
	framed = binary.LittleEndian.AppendUint32(append(framed, record...), maskedChecksum(record))
	if w.err == nil {
		_, err := w.to.Write(framed)
		w.err = errors.Wrap(err, "export: tensorboard")
	}
}

// maskedChecksum returns the CRC-32C of bytes, rotated and shifted, since a checksum of data that
// contain checksums is weak.
func maskedChecksum(of []byte) uint32 {
	sum := crc32.Checksum(of, crc32.MakeTable(crc32.Castagnoli))
	return (sum>>15 | sum<<17) + 0xa282ead8
}

func bytesField(number protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
}

// value writes a summary of one value.
func (w *events) value(step int, tag string, value []byte) {
	w.event(step, bytesField(5, bytesField(1, append(bytesField(1, []byte(tag)), value...))))
}

func (w *events) scalar(step int, tag string, value float64) {
	field := protowire.AppendTag(nil, 2, protowire.Fixed32Type)
	w.value(step, tag, protowire.AppendFixed32(field, math.Float32bits(float32(value))))
}

// maxBins is the number of bins of a histogram.
const maxBins = 64

// histogram writes the histogram of values in bins of equal width.
func (w *events) histogram(step int, tag string, values []float32) {
	low, high := float64(slices.Min(values)), float64(slices.Max(values))
	limits, counts := make([]float64, maxBins), make([]float64, maxBins)
	width := (high - low) / maxBins
	for i := range limits {
		limits[i] = low + float64(i+1)*width
	}
	limits[maxBins-1] = high
	sum, squares := 0.0, 0.0
	for _, v := range values {
		x := float64(v)
		sum, squares = sum+x, squares+x*x
		bin := 0
		if width > 0 {
			bin = min(maxBins-1, int((x-low)/width))
		}
		counts[bin]++
	}
	if width == 0 {
		limits, counts = limits[maxBins-1:], []float64{float64(len(values))}
	}
	var h []byte
	for i, v := range []float64{low, high, float64(len(values)), sum, squares} {
		h = protowire.AppendFixed64(protowire.AppendTag(h, protowire.Number(i+1), protowire.Fixed64Type), math.Float64bits(v))
	}
	for i, list := range [][]float64{limits, counts} {
		var packed []byte
		for _, v := range list {
			packed = protowire.AppendFixed64(packed, math.Float64bits(v))
		}
		h = append(h, bytesField(protowire.Number(6+i), packed)...)
	}
	w.value(step, tag, bytesField(5, h))
}

// image writes a PNG image.
func (w *events) image(step int, tag string, content []byte) error {
	config, err := png.DecodeConfig(bytes.NewReader(content))
	if err != nil {
		return errors.Wrapf(err, "export: tensorboard: %s", tag)
	}
	const rgba = 4
	var image []byte
	for i, v := range []int{config.Height, config.Width, rgba} {
		image = protowire.AppendVarint(protowire.AppendTag(image, protowire.Number(i+1), protowire.VarintType), uint64(v))
	}
	w.value(step, tag, bytesField(4, append(image, bytesField(4, content)...)))
	return nil
}

// run writes all events of a run.
func (w *events) run(run *bayes.Run) error {
	parts, err := run.Parts()
	if err != nil {
		return err
	}
	dirs := []string{run.Dir()}
	if parts != nil {
		dirs = nil
		for _, part := range parts {
			dirs = append(dirs, part.Dir())
		}
	}
	for i, dir := range dirs {
		lines, err := readMetrics(dir)
		if err != nil {
			return err
		}
		prefix := ""
		if len(dirs) > 1 {
			prefix = fmt.Sprintf("part%d/", i)
		}
		for _, step := range slices.Sorted(maps.Keys(lines)) {
			w.metrics(prefix, lines[step], run.Manifest().Spec.Schedule != nil)
		}
	}
	draws, err := run.Draws()
	if err != nil {
		return err
	}
	last := 0
	for i := range draws.Len() {
		s, err := draws.Weights(i)
		if err != nil {
			return err
		}
		for _, p := range s.Parameters {
			w.histogram(s.Step, fmt.Sprintf("chain%d/%s", draws.Chain(i), p.Name), p.Values)
		}
		last = max(last, s.Step)
	}
	entries, err := os.ReadDir(run.Dir()) // whose path may have characters of a pattern
	if err != nil {
		return errors.Wrap(err, "export: tensorboard")
	}
	for _, entry := range entries {
		figure, is := strings.CutSuffix(entry.Name(), ".png")
		if !is {
			continue
		}
		content, err := os.ReadFile(filepath.Join(run.Dir(), entry.Name()))
		if err != nil {
			return errors.Wrap(err, "export: tensorboard")
		}
		if err := w.image(last, "figures/"+figure, content); err != nil {
			return err
		}
	}
	return w.err
}

// metrics writes the scalars of a window of steps. rated is false for samplers on all data, which
// have step sizes instead of a learning rate.
func (w *events) metrics(prefix string, line rundir.Metrics, rated bool) {
	w.scalar(line.Step, prefix+"loss", line.Loss)
	w.scalar(line.Step, prefix+"accuracy", line.Accuracy)
	if rated {
		w.scalar(line.Step, prefix+"learning_rate", line.Rate)
	}
	if line.Temperature != nil {
		w.scalar(line.Step, prefix+"temperature", *line.Temperature)
	}
}

// Live writes the events of a run that is being sampled to an event file.
type Live struct {
	file *os.File
	now  func() time.Time
	w    *events
}

// NewLive begins an event file in dir, which it creates if necessary; now returns the time. A
// resumed run adds a file, which TensorBoard joins to those before.
func NewLive(dir string, now func() time.Time) (*Live, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, errors.Wrap(err, "export: tensorboard")
	}
	path := filepath.Join(dir, eventFile(now()))
	for place, n := path, 1; ; n++ {
		file, err := os.OpenFile(place, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if os.IsExist(err) { // a run began in the same second
			place = fmt.Sprintf("%s.%d", path, n)
			continue
		}
		if err != nil {
			return nil, errors.Wrap(err, "export: tensorboard")
		}
		return &Live{file: file, now: now, w: newEvents(file, now())}, nil
	}
}

// Observe is a bayes.Observer that writes the scalars of a window of steps. After a failed write
// it does nothing, and Close returns the error.
func (l *Live) Observe(e bayes.Event) {
	if e.Task != "fit" || e.Remark != "" {
		return
	}
	l.w.at = float64(l.now().UnixNano()) / 1e9
	for _, s := range []struct {
		tag   string
		value float64
	}{{"loss", e.Loss}, {"accuracy", e.Accuracy}, {"temperature", e.Temperature}, {"r_hat", e.RHat}} {
		if !math.IsNaN(s.value) && !math.IsInf(s.value, 0) {
			l.w.scalar(e.Done, s.tag, s.value)
		}
	}
}

// Close closes the file, and returns the first error of writing it.
func (l *Live) Close() error {
	if err := l.file.Close(); l.w.err == nil {
		return errors.Wrap(err, "export: tensorboard")
	}
	return l.w.err
}
