"""Models on the Hub: published with a card, fetched by name, found again without a network."""

import json
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import huggingface_hub.constants
import pytest
import torch
import yaml

import vaezoo
from tests.helpers.harness import attempt
from tests.helpers.hub_server import Hub, hub_server
from tests.helpers.zoo import MODELS, a_batch

FACTS = {"license": "mit", "command": "vaezoo fit --config x"}
TOKEN = "hf_0123456789abcdefghijklmnopqrstuvwx"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A Hub on this machine; the library's own settings, which it reads when it is imported, lead there."""
    with hub_server() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.address)
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.chdir(tmp_path)
        yield server
        assert not server.unknown


def test_published_fetched_and_found_offline(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    model = MODELS["JointVAE"]().eval()
    address = vaezoo.push_to_hub(model, "me/joint", token=TOKEN, private=True, half=True, **FACTS)
    assert address == f"{hub.address}/me/joint"
    assert hub.private == {"me/joint": True}
    assert f"Bearer {TOKEN}" in hub.tokens
    assert set(hub.repos["me/joint"]) == {"config.json", "model.safetensors", "README.md"}
    card = hub.repos["me/joint"]["README.md"].decode()
    assert yaml.safe_load(card.split("---\n")[1])["license"] == "mit"
    assert 'vaezoo.from_pretrained("me/joint")' in card
    assert "--ckpt_path hub:me/joint" in card
    read = vaezoo.from_pretrained("me/joint")
    x = a_batch().x
    torch.testing.assert_close(read.represent(x), model.represent(x), rtol=1e-2, atol=1e-2)
    by_revision = vaezoo.from_pretrained(f"hub:me/joint@{hub.commit('me/joint')}")
    assert torch.equal(by_revision.represent(x), read.represent(x))
    assert attempt(["traverse", "--prior", "--ckpt_path=hub:me/joint"]) == (0, "")
    assert list(Path("pretrained/me/joint/traversals").iterdir())
    hub.asked.clear()
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    assert torch.equal(vaezoo.from_pretrained("me/joint").represent(x), read.represent(x))
    assert not hub.asked


def test_found_where_the_network_is_down(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    vaezoo.push_to_hub(MODELS["VAE"](), "me/vae", token=TOKEN)
    before = vaezoo.from_pretrained("me/vae")
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{free_port()}")
    after = vaezoo.from_pretrained("me/vae")
    assert torch.equal(after.represent(a_batch().x), before.represent(a_batch().x))


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def test_a_folder_is_published_without_what_lies_beside_it(hub: Hub, tmp_path: Path) -> None:
    folder = vaezoo.save_pretrained(MODELS["VAE"](), tmp_path / "vae", **FACTS)
    (folder / "secrets.txt").write_text("mine")
    (folder / "metrics.json").write_text("{}")
    vaezoo.push_to_hub(folder, "me/vae", token=TOKEN)
    assert set(hub.repos["me/vae"]) == {"config.json", "model.safetensors", "README.md"}
    assert hub.repos["me/vae"]["model.safetensors"] == (folder / "model.safetensors").read_bytes()
    with pytest.raises(ValueError, match="half is for a model"):
        vaezoo.push_to_hub(folder, "me/vae", half=True)


def test_what_is_not_there_or_not_ours_is_one_line(hub: Hub) -> None:
    with pytest.raises(ConnectionError, match="hub:me/nothing could not be fetched"):
        vaezoo.from_pretrained("me/nothing")
    code, line = attempt(["evaluate", "--ckpt_path", "hub:me/nothing"])
    assert code == 1
    assert "hub:me/nothing could not be fetched" in line
    hub.repos["me/bert"] = {"config.json": json.dumps({"model_type": "bert"}).encode(), "model.safetensors": b"x"}
    with pytest.raises(ValueError, match="of no vaezoo model"):
        vaezoo.from_pretrained("me/bert")
    assert not any("bert/resolve/main/model.safetensors" in line for line in hub.asked), "nothing large was fetched"


def test_what_was_damaged_on_the_way_is_one_line(hub: Hub) -> None:
    vaezoo.push_to_hub(MODELS["VAE"](), "me/vae", token=TOKEN)
    hub.repos["me/vae"]["model.safetensors"] = b"\0" + hub.repos["me/vae"]["model.safetensors"][1:]
    with pytest.raises(ValueError, match=r"model.safetensors is damaged, or of another model"):
        vaezoo.from_pretrained("me/vae")


@pytest.mark.parametrize("name", ["no name", "../../etc/x", "a/b/c", ""])
def test_what_is_no_name_of_the_hub(name: str, hub: Hub) -> None:
    code, line = attempt(["evaluate", f"--ckpt_path=hub:{name}"])
    assert code == 1
    assert "hub:user/name" in line
    assert not hub.asked


def test_without_the_extra_one_line_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    code, line = attempt(["evaluate", "--ckpt_path=hub:me/vae"])
    assert code == 1
    assert "pip install 'vaezoo[hub]'" in line
    vaezoo.save_pretrained(MODELS["VAE"](), "vae")
    code, line = attempt(["share", "vae", "--name=mine", "--hub=me/vae"])
    assert code == 1
    assert "pip install 'vaezoo[hub]'" in line
    assert not Path("mine").exists()
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'vaezoo\[hub\]'"):
        vaezoo.push_to_hub(MODELS["VAE"](), "me/vae")
