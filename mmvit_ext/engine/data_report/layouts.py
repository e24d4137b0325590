"""Where each data set expects its files."""

from mmengine.config import ConfigDict

COCO = """\
DIR/annotations/instances_train2017.json   DIR/train2017/*.jpg
DIR/annotations/instances_val2017.json     DIR/val2017/*.jpg
(https://cocodataset.org: 2017 train and val images, train/val annotations)"""
ADE20K = """\
DIR/images/training/*.jpg     DIR/annotations/training/*.png
DIR/images/validation/*.jpg   DIR/annotations/validation/*.png
(ADEChallengeData2016 from http://sceneparsing.csail.mit.edu)"""
IMAGENET = """\
DIR/train/<class>/*   DIR/val/<class>/*
(https://image-net.org: ILSVRC2012; or the images without folders, with their classes in
DIR/meta/train.txt and DIR/meta/val.txt)"""
CIFAR10 = """\
DIR/cifar-10-batches-py/data_batch_1 ... data_batch_5, test_batch, batches.meta
(cifar-10-python.tar.gz from https://www.cs.toronto.edu/~kriz/cifar.html, unpacked; training
fetches it where it is not there)"""
CIFAR100 = """\
DIR/cifar-100-python/train, test, meta
(cifar-100-python.tar.gz from https://www.cs.toronto.edu/~kriz/cifar.html, unpacked; training
fetches it where it is not there)"""
FLOWERS = """\
DIR/jpg/image_*.jpg   DIR/imagelabels.mat   DIR/setid.mat
(https://www.robots.ox.ac.uk/~vgg/data/flowers/102)"""
PETS = """\
DIR/images/*.jpg   DIR/annotations/trainval.txt   DIR/annotations/test.txt
(https://www.robots.ox.ac.uk/~vgg/data/pets)"""

LAYOUTS = {
    'CocoDataset': COCO,
    'ADE20KDataset': ADE20K,
    'ImageNet': IMAGENET,
    'CIFAR10': CIFAR10,
    'CIFAR100': CIFAR100,
    'Flowers102': FLOWERS,
    'OxfordIIITPet': PETS,
}
OF_SCOPE = {'mmdet': COCO, 'mmseg': ADE20K, 'mmpretrain': IMAGENET}


def layout_of(dataset: ConfigDict, scope: str) -> str:
    """How to lay out the files of a data set.

    Args:
        dataset: Its config.
        scope: ``'mmdet'``, ``'mmseg'`` or ``'mmpretrain'``: decides for types without an entry.

    Returns:
        A few lines, in which DIR is the dataset's ``data_root``.
    """
    kind = str(dataset.type).rsplit('.', 1)[-1]
    return LAYOUTS.get(kind, OF_SCOPE[scope])
