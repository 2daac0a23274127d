// Package datasets provides the images that Pollen's programs train and test on, as labelled bytes
// in memory: known data sets by name, and the user's own folders and files by path.
//
// Its nouns: a Dataset is a set of images with their labels; a Split is the part of it meant for
// training, for validation or for testing; Splits are all parts; a place is a folder where the
// files of a known data set may lie. Open finds a data set with all its splits, Load one split;
// List describes the known names; New, ReadImages and Decode take images from elsewhere.
//
//	mnist          handwritten digits       60 000 + 10 000
//	fashion-mnist  articles of clothing     60 000 + 10 000
//	notmnist       letters A to J, found    as many as the user's copy has
//	glyphs         letters A to J, drawn    20 000 + 10 000, made by this package
//
// Its one policy: the data are what they claim to be, or there is an error. Every file is verified,
// by its SHA-256 if the data set is published; a file that is truncated, too long or hostile gives
// an error naming the file, the offset and what was expected there; a file that cannot be found
// gives an error naming every place tried. Only unreadable pictures are skipped, and only a few
// (Options.MaxSkipped): Dataset.Skipped names them.
//
// Nothing here shuffles or copies to a device: images stay bytes, and the
// device turns a byte p into (p/255 - Mean)/Deviation as it gathers a
// minibatch.
//
// # Folders of pictures
//
// A folder for each class, with PNG, JPEG, GIF, BMP, WebP, TIFF, PGM or PPM
// pictures in it or in folders below it:
//
//	flowers/train/rose/1.jpg    flowers/rose/1.jpg
//	flowers/val/rose/7.jpg      flowers/iris/2.png
//	flowers/test/iris/9.jpg
//
// The folders of the splits are train or training, val, valid or validation, and test or testing,
// in any case, and may all begin alike (Final_Training, Final_Test). Folders beside them are not
// read. Validation and test images may only have classes of the training images. Without folders
// for splits, a share of each class is drawn for the test and the validation split (Options.Test,
// Validation and Seed). A folder that contains only one folder stands for that one.
//
// Instead of class folders there may be a CSV file beside the pictures, with commas, semicolons or
// tabs, whose heading has a column for the files (filename, file, path, image, image_path or
// img_path) and one for the classes (classid, class, label or category). Files are named relative
// to the CSV file's folder, or by their last part if it is unique below that folder; pictures not
// named are not read.
//
// Classes that are whole numbers are named without leading zeros: 00007 and 7
// are one class. Classes are in the order of their numbers, then of their
// names. Hidden files, and files without a picture's extension, are not read.
//
// # Pictures
//
// Whole pictures are scaled, without keeping their aspect ratio, to height x width by a Catmull-Rom
// filter that averages when it shrinks; JPEGs are first turned as their EXIF block says.
// Transparent pictures are put over white. One channel is the luminance, three are red, green and
// blue, four add the opacity. 16 bits become the higher 8, in PGM and PPM the nearest; animations
// their first picture.
//
// If the options leave it open, there is 1 channel if all training pictures are stored in grey,
// otherwise 3; the size is their own if all have the same, of at most MaxSide; otherwise 32x32 if
// the median of their shorter sides is below 64, else 64x64. The images are the same on every
// machine, whatever the number of threads.
//
// The images of a folder are kept in the cache (Options.Cache, NoCache), one file for each folder
// and requested shape. They are used as long as the names, sizes and modification times of all
// files, and the contents of the tables, are the same and the kept file's checksum is right;
// otherwise they are made anew. A file changed without a change of its size and time goes
// unnoticed. Dataset.Hashes has a SHA-256 over all names and contents.
//
// # Other formats
//
// Open's comment lists the arrays and archives it reads.
//
// A new format is a row of the table in open.go; one of pictures, in decode.go.
package datasets
