"""LightningDataModules of the datasets that the papers use, and of one's own images."""

from datamodules.base import ImageDataModule
from datamodules.blobs import BlobsDataModule
from datamodules.celeba import CelebAClassesDataModule, CelebADataModule
from datamodules.chairs import ChairsDataModule
from datamodules.dsprites import DSpritesDataModule
from datamodules.image_folder import ImageFolderDataModule
from datamodules.isaac3d import Isaac3DDataModule
from datamodules.mnist import FashionMNISTDataModule, MNISTDataModule
from datamodules.shapes3d import Shapes3DDataModule

__all__ = [
    "BlobsDataModule",
    "CelebAClassesDataModule",
    "CelebADataModule",
    "ChairsDataModule",
    "DSpritesDataModule",
    "FashionMNISTDataModule",
    "ImageDataModule",
    "ImageFolderDataModule",
    "Isaac3DDataModule",
    "MNISTDataModule",
    "Shapes3DDataModule",
]
