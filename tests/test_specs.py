import copy
import pickle

import pytest

from vaezoo.models import BetaVAE
from vaezoo.nn.networks import DenseNetwork, Network
from vaezoo.regularizers import KL, Capacity, Regularizer


def test_a_spec_builds_an_equal_object() -> None:
    capacity = Capacity("c", gamma=3.0, steps=7)
    built = Regularizer.build(capacity.spec)
    assert isinstance(built, Capacity)
    assert (built.latent, built.gamma, built.max_nats, built.steps) == ("c", 3.0, 25.0, 7)
    assert built.spec == capacity.spec


def test_specs_nest_and_hold_plain_data_only() -> None:
    model = BetaVAE((1, 16, 16), regularizers={"more": KL("z", 2.0)}, network=DenseNetwork((8,), (8,)), lr=1e-3)
    assert model.spec["init_args"] == {
        "image_shape": [1, 16, 16],
        "regularizers": {"more": {"class_path": "vaezoo.KL", "init_args": {"latent": "z", "beta": 2.0}}},
        "network": {
            "class_path": "vaezoo.DenseNetwork",
            "init_args": {"encoder_widths": [8], "decoder_widths": [8]},
        },
        "lr": 1e-3,
    }


def test_build_refuses_other_types_and_unknown_classes() -> None:
    with pytest.raises(ValueError, match="'DenseNetwork' is not an imported Regularizer"):
        Regularizer.build({"class_path": "DenseNetwork"})
    with pytest.raises(ValueError, match=r"'os.system' is not an imported Network"):
        Network.build({"class_path": "os.system", "init_args": {"command": "true"}})
    with pytest.raises(ValueError, match="expected a Network"):
        Network.build("DenseNetwork")  # type: ignore[arg-type]


def test_an_argument_that_no_checkpoint_can_hold_is_an_error() -> None:
    with pytest.raises(TypeError, match="'latent'"):
        KL(latent=object())  # type: ignore[arg-type]


def test_copies_keep_their_spec() -> None:
    capacity = Capacity("c", gamma=3.0)
    assert copy.deepcopy(capacity).spec == capacity.spec
    assert pickle.loads(pickle.dumps(capacity)).spec == capacity.spec
