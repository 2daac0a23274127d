package datasets

// debianFashionMNIST is the directory of the four files in Debian's package dataset-fashion-mnist.
// They are repacked, without the names in the published gzip headers; their content is the same.
const debianFashionMNIST = "/usr/share/datasets/fashion-mnist"

// fashionMNIST describes the articles of clothing of H. Xiao, K. Rasul and
// R. Vollgraf, "Fashion-MNIST: a Novel Image Dataset for Benchmarking Machine
// Learning Algorithms" (2017).
func fashionMNIST() source {
	return source{
		name:   "fashion-mnist",
		what:   "articles of clothing",
		images: [2]int{Train: 60000, Test: 10000},
		classNames: []string{
			"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
		},
		mean: 0.28604059698879553,
		std:  0.35302424451492259,
		files: [2]pair{
			Train: mnistPair("train",
				file{size: 26421880, content: "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
					packed: "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"},
				file{size: 29515, content: "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
					packed: "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"},
			),
			Test: mnistPair("t10k",
				file{size: 4422102, content: "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
					packed: "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"},
				file{size: 5148, content: "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
					packed: "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"},
			),
		},
		subfolders: []string{"FashionMNIST/raw"},
		dirs:       func() []string { return []string{debianFashionMNIST} },
		mirrors: []string{
			"https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
			"https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
		},
		advice: "Put Fashion-MNIST's four .gz files into a directory and set " + EnvironmentDir + " to it" +
			", or install Debian's package dataset-fashion-mnist.",
	}
}
