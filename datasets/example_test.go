package datasets_test

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"os"
	"path/filepath"
	"strings"

	"github.com/pollen-ml/pollen/datasets"
)

func Example() {
	digits, err := datasets.Load("mnist", datasets.Train, datasets.Options{Offline: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(digits.Len(), "images of", digits.Height, "x", digits.Width, "in", digits.Classes, "classes")
	fmt.Printf("mean %.4f, deviation %.4f\n", digits.Mean[0], digits.Std[0])

	training, validation, err := digits.Split(55000)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(training.Len(), "to train,", validation.Len(), "to validate")
	// Output:
	// 60000 images of 28 x 28 in 10 classes
	// mean 0.1307, deviation 0.3081
	// 55000 to train, 5000 to validate
}

// A folder of pictures: a folder for each class, here without splits.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "paint")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	for class, paint := range map[string]string{"red": "200 10 20", "blue": "10 20 200"} {
		for i := range 10 {
			name := filepath.Join(dir, class, fmt.Sprint(i, ".ppm"))
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				fmt.Println(err)
			}
			if err := os.WriteFile(name, []byte("P3 1 1 255 "+paint), 0o644); err != nil {
				fmt.Println(err)
			}
		}
	}
	paints, err := datasets.Open(dir, datasets.Options{Height: 8, Width: 8, NoCache: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(paints.Train.ClassNames, paints.Train.Channels, paints.Train.Height, paints.Train.Width)
	fmt.Println(paints.Train.Counts(), paints.Validation.Counts(), paints.Test.Counts())
	fmt.Println(paints.Test.Labels[0], paints.Test.Image(0)[0], paints.Test.Image(0)[64], paints.Test.Image(0)[128])
	// Output:
	// [blue red] 3 8 8
	// [6 6] [2 2] [2 2]
	// 0 10 20 200
}

// Images that a program draws or receives, of any size, and their labels.
func ExampleFromImages() {
	var images []image.Image
	for i := range 4 {
		ball := image.NewRGBA(image.Rect(0, 0, 30+i, 40))
		draw.Draw(ball, image.Rect(10, 10, 20, 20), image.NewUniform(color.RGBA{R: 200, A: 255}), image.Point{}, draw.Src)
		images = append(images, ball)
	}
	balls, err := datasets.FromImages("balls", images, []int32{0, 1, 0, 1}, []string{"small", "large"}, datasets.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(balls.Len(), "images of", balls.Channels, "x", balls.Height, "x", balls.Width, "with labels", balls.Labels)
	// Output: 4 images of 3 x 32 x 32 with labels [0 1 0 1]
}

func ExampleNew() {
	pixels := []byte{0, 255, 255, 0, 255, 255} // three images [1 1 2]
	d, err := datasets.New("edges", pixels, []int32{0, 1, 2}, 1, 1, 2, []string{"rising", "falling", "none"})
	fmt.Println(d.Len(), d.ClassNames, d.Mean, err)
	// Output: 3 [rising falling none] [0.6666666666666666] <nil>
}

// The built-in letters need no files. Here is one of them, every second row.
func ExampleLoad() {
	letters, err := datasets.Load("glyphs", datasets.Test, datasets.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	const index = 0
	fmt.Println(letters.ClassNames[letters.Labels[index]])
	image := letters.Image(index)
	for y := 0; y < letters.Height; y += 2 {
		var line strings.Builder
		for _, pixel := range image[y*letters.Width : (y+1)*letters.Width] {
			line.WriteByte(" .:#"[pixel/64])
		}
		fmt.Println("|" + line.String() + "|")
	}
	// Output:
	// A
	// |                .####:      |
	// |               :######      |
	// |              ########:     |
	// |             ##########     |
	// |           .#####.:####.    |
	// |          :#####   #####    |
	// |         ######    #####.   |
	// |        #####:     .#####   |
	// |      :######:::::::#####.  |
	// |     #####################  |
	// |    ######################. |
	// |  .#####:            :####: |
	// | :#####.             .##### |
	// |######                #####:|
}

func ExampleList() {
	for _, description := range datasets.List(datasets.Options{}) {
		fmt.Printf("%-14s %5d + %5d  %s\n", description.Name,
			description.Images[datasets.Train], description.Images[datasets.Test], description.What)
	}
	// Output:
	// mnist          60000 + 10000  handwritten digits
	// fashion-mnist  60000 + 10000  articles of clothing
	// notmnist           0 +     0  letters A to J of found typefaces
	// glyphs         20000 + 10000  letters A to J drawn from the faces of Go's font modules
}
