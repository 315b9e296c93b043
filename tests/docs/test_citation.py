"""CITATION.cff: this version, and the five papers by the classes that implement them."""

import yaml

import vaezoo
from tests.helpers.paths import ROOT


def test_the_citation_is_of_this_version_and_names_the_papers() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert cited["version"] == vaezoo.__version__
    papers = {reference["notes"].strip("`"): reference for reference in cited["references"]}
    assert set(papers) == {"JointVAE", "DIPVAE", "PartedVAE", "WeLaVAE", "LaRVAE"}
    for name, reference in papers.items():
        first = reference["authors"][0]["family-names"]
        assert getattr(vaezoo, name).paper.startswith(first)
        assert getattr(vaezoo, name).paper.endswith(str(reference["year"]))
