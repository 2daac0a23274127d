// Package datasets loads labelled images as bytes in memory: known data sets by name, and custom
// directories and files by path.
//
// Open returns a data set with all its Splits, each a Dataset; Load returns one split. List
// describes the known data sets. ReadImages reads images without labels, and Decode decodes one
// image. FromImages makes a Dataset of values of image.Image, and New one of bytes.
// Dataset.Corrupted applies the corruptions of CIFAR-10-C.
//
//	mnist          handwritten digits       60 000 + 10 000
//	fashion-mnist  articles of clothing     60 000 + 10 000
//	notmnist       letters A to J, found    as many as the user's copy has
//	glyphs         letters A to J, drawn    20 000 + 10 000, made by this package
//
// Every file is verified, by its SHA-256 if the data set is published. A file that is truncated,
// too long or malicious is an error with the file's name, the offset and the expected content. A
// missing file is an error with all searched places. Unreadable image files are skipped, up to a
// limit (Options.MaxSkipped), and listed in Dataset.Skipped.
//
// Images stay bytes: a device computes (p/255 - Mean)/Std of a byte p when it gathers a minibatch.
//
// # Image directories
//
// An image directory has a directory for each class, with PNG, JPEG, GIF, BMP, WebP, TIFF, PGM or
// PPM files in it or below it:
//
//	flowers/train/rose/1.jpg    flowers/rose/1.jpg
//	flowers/val/rose/7.jpg      flowers/iris/2.png
//	flowers/test/iris/9.jpg
//
// The directories of splits are named train or training; test or testing; and val, valid, validate,
// validation, dev, development or calibration. Upper and lower case do not matter, "images" may
// follow (train_images), and all may have a common prefix (Final_Training, Final_Test). Other
// directories next to them are ignored. Validation and test images must have classes of the
// training images; a validation or test directory whose images have no classes is left out. For a
// missing split, a fraction of each class is drawn from the training images (Options.Test,
// Validation and Seed); images of one group, such as a patient, stay together (Options.Group). A
// directory that contains only one directory is replaced by that one.
//
// If the classes are in the names of the files, Options.Label is a pattern that finds them. Then
// directories are no classes, and tables are not read.
//
// Instead of class directories there may be a label table: a CSV or JSON file next to the images,
// or next to the directories with the images. CSV is separated by commas, semicolons or tabs, in
// UTF-8, or in UTF-16 with a byte order mark. Its header must have a column of file names
// (filename, file, path, image, image_path, image_id and the like) and one of classes (classid,
// class, label, category, target and the like, or the column that Options.Label names). Where
// there are no class directories, other headings are understood, too, if the contents are clear: a
// column of images' names with a single other column, or with a column for each class that has a 1
// for its images. A column called split, subset, partition, set or fold whose values are train,
// val and test (or the names of directories above) assigns the splits, as do several tables with
// such names: train.csv, test.csv. If the directory has several tables otherwise, open one by its
// path.
//
// A JSON file (.json, .jsonl) has an object for each image, in a list or in a line of its own,
// whose members stand for the columns. Or it has one object, with the class of each file, as in
// {"1.jpg": "rose"}, or with COCO's lists of images, annotations and categories, where the
// annotations of an image must have one category.
//
// File names are relative to the table's directory, or base names that are unique below it. They
// may have slashes or backslashes, and another extension than the image or none; if none of them is
// there, only the last parts of their paths are compared. Images that are not in the table are
// left out, as are those whose class is empty; a record that repeats another is ignored. An image
// with two classes is an error, or left out by DropDuplicates.
//
// Names of classes are compared without surrounding space and in Unicode's normal form NFC, and
// integers lose leading zeros: 00007 and 7 are the same class. Classes are ordered by number, then
// by name. Hidden files are ignored, as are files that systems add, such as @eaDir,
// #recycle and __MACOSX. Anything that is neither a regular file nor a directory, such as a named
// pipe, counts as an unreadable file.
//
// Dataset.Remarks reports possible mistakes: how many files were left out, by extension; how many
// were skipped, and the first of them; images that the table does not name; CSV files that were not
// read; classes that differ only in upper and lower case. For every format it has the number of
// images with the same pixels, or nearly so, in two splits, and with the same pixels and two labels
// (Options.Duplicates drops or refuses them); and if splits were drawn without groups, whether the
// names of files look like sequences of frames.
//
// # Parquet files
//
// A Parquet file has an image file in each row, as the Hugging Face Hub stores them, in columns:
//
//   - the images: bytes, or a struct with the bytes and, optionally, the path of the file. Of
//     several such columns the one called image, img or pixel_values is read.
//   - the labels: integers or text. These are the column that Options.Label names, or the one that
//     the metadata "huggingface" of the file describe as class labels, or else the first called
//     class, label, category, labels, target, fine_label and the like. Integers are the numbers of
//     the classes in these metadata, or else the names of the classes. Labels of -1 and null are
//     missing; images without a label are left out if others of their split have one.
//   - the groups, if Options.Group names them.
//
// Other columns are not read, which is a remark unless they are in Options.OtherColumns; those that
// ReadImages recognises as identifiers become Dataset.IDs.
//
// The files of a data set are in one directory, called train-00000-of-00003.parquet and the like,
// or in directories train, test and validation; these may be in a directory that is the only one
// with Parquet files. Files without the name of a split are training images if no file has one, and
// otherwise left out. A split whose labels are all missing has no labels, see ArrayFormats.
//
// Classes, splits, remarks and the cache are as for image directories. Images are named by their
// paths, or, if some have none or the same path, by file and row, from 0: "train.parquet[3]".
//
// # Decoding
//
// Images are scaled to height x width, without keeping their aspect ratio, by a Catmull-Rom filter
// that averages when it shrinks. Images are first turned as their EXIF orientation requires, in
// JPEG, PNG, WebP and TIFF. Transparent images are drawn over white. One channel is the luminance,
// three are red, green and blue, four add the opacity. Images of 16 bits per channel are scaled in
// 16 bits and rounded to 8 at the end; Options.Bits is for fewer significant bits.
//
// Of an animation the first frame is read, drawn over a white canvas, and of a TIFF file with
// several pages the first page. Errors outside of the pixels are ignored: a checksum of a PNG chunk
// of text, a missing end. Images in other formats, such as HEIC and AVIF, are recognised by their
// content and named in the error.
//
// If the options do not set them, there is 1 channel if all training images are stored in grey,
// otherwise 3; the size is the images' own if it is the same for all and at most 256x256, otherwise
// 32x32 if the median of the shorter sides is below 64, and 64x64 if not. The result is the same on
// every machine, for any number of threads.
//
// Decoded images are cached (Options.Cache, NoCache), in one file for each directory and requested
// shape. The cache is used while the names, sizes and modification times of all files, and the
// contents of tables, are unchanged, and its checksum is right. A file that changes without a
// change of size and time goes unnoticed. Dataset.Hashes has a SHA-256 over all names and contents.
//
// # Other formats
//
// Open documents the arrays and archives that it reads.
//
// To add a format, add a row to the table in arrayformats.go; for an image format, in
// internal/decode/formats.go. A format of image files is listed as a tree, as in parquetlist.go.
package datasets
