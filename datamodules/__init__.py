"""LightningDataModules for standard datasets and for your own images."""

from datamodules.arrays import ArrayDataModule
from datamodules.base import ImageDataModule
from datamodules.blobs import BlobsDataModule
from datamodules.cars3d import Cars3DDataModule
from datamodules.celeba import CelebAClassesDataModule, CelebADataModule
from datamodules.chairs import ChairsDataModule
from datamodules.dsprites import DSpritesDataModule
from datamodules.falcor3d import Falcor3DDataModule
from datamodules.image_folder import ImageFolderDataModule
from datamodules.isaac3d import Isaac3DDataModule
from datamodules.mnist import FashionMNISTDataModule, MNISTDataModule
from datamodules.mpi3d import MPI3DDataModule
from datamodules.shapes3d import Shapes3DDataModule
from datamodules.smallnorb import SmallNORBDataModule

__all__ = [
    "ArrayDataModule",
    "BlobsDataModule",
    "Cars3DDataModule",
    "CelebAClassesDataModule",
    "CelebADataModule",
    "ChairsDataModule",
    "DSpritesDataModule",
    "Falcor3DDataModule",
    "FashionMNISTDataModule",
    "ImageDataModule",
    "ImageFolderDataModule",
    "Isaac3DDataModule",
    "MNISTDataModule",
    "MPI3DDataModule",
    "Shapes3DDataModule",
    "SmallNORBDataModule",
]
