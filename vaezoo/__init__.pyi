from . import (
    functional as functional,
    metrics as metrics,
)
from .callbacks import (
    AddRegularizer as AddRegularizer,
    BestCheckpoint as BestCheckpoint,
    Compile as Compile,
    EvaluateDisentanglement as EvaluateDisentanglement,
    GuardFinite as GuardFinite,
    LastCheckpoint as LastCheckpoint,
    LocalStatistics as LocalStatistics,
    ProgressLines as ProgressLines,
    StopOnSignal as StopOnSignal,
    ThroughputBar as ThroughputBar,
)
from .explorer.opening import (
    explore as explore,
)
from .models import (
    DIPVAE as DIPVAE,
    TCVAE as TCVAE,
    VAE as VAE,
    AnnealedVAE as AnnealedVAE,
    BetaVAE as BetaVAE,
    FactorVAE as FactorVAE,
    JointVAE as JointVAE,
    LaRVAE as LaRVAE,
    PartedVAE as PartedVAE,
    WeLaVAE as WeLaVAE,
)
from .nn.autoencoder import (
    Autoencoder as Autoencoder,
)
from .nn.latents import (
    ConcreteLatent as ConcreteLatent,
    GaussianLatent as GaussianLatent,
    LatentGroup as LatentGroup,
)
from .nn.mixture import (
    MixtureLatent as MixtureLatent,
)
from .nn.networks import (
    BurgessNetwork as BurgessNetwork,
    ConvNetwork as ConvNetwork,
    DenseNetwork as DenseNetwork,
    JointVAENetwork as JointVAENetwork,
    LaRVAENetwork as LaRVAENetwork,
    LocatelloNetwork as LocatelloNetwork,
    Network as Network,
    PartedVAENetwork as PartedVAENetwork,
)
from .pictures import (
    Pictures as Pictures,
    SaveClassSamples as SaveClassSamples,
    SaveCodeMatrices as SaveCodeMatrices,
    SaveLabelTraversals as SaveLabelTraversals,
    SavePictures as SavePictures,
    SavePositionMaps as SavePositionMaps,
    SavePriors as SavePriors,
    SaveTransfers as SaveTransfers,
    SaveUnitNats as SaveUnitNats,
)
from .regularizers import (
    KL as KL,
    AggregatePosterior as AggregatePosterior,
    Capacity as Capacity,
    CovarianceMatching as CovarianceMatching,
    DiscriminatedTotalCorrelation as DiscriminatedTotalCorrelation,
    Entropy as Entropy,
    LabelLikelihood as LabelLikelihood,
    LabelReconstruction as LabelReconstruction,
    LabelReplacement as LabelReplacement,
    Overlap as Overlap,
    Regularizer as Regularizer,
    TotalCorrelation as TotalCorrelation,
    ViewAgreement as ViewAgreement,
)
from .runs.checkpoint_io import (
    AtomicCheckpointIO as AtomicCheckpointIO,
)
from .runs.loading import (
    load as load,
    save as save,
)
from .sharing.encoder import (
    Encoder as Encoder,
)
from .sharing.export import (
    export as export,
)
from .sharing.hub import (
    push_to_hub as push_to_hub,
)
from .sharing.pretrained import (
    from_pretrained as from_pretrained,
    pretrained as pretrained,
)
from .sharing.saving import (
    save_pretrained as save_pretrained,
)
from .types import (
    Batch as Batch,
    Forward as Forward,
    Term as Term,
)

__version__: str
