"""Short names of runs: the settings in which they differ, as "β = 4" or "β = 16, seed 1"."""

from collections.abc import Mapping, Sequence

from vaezoo.text import on_one_line

NAME, SEED = "name", "seed_everything"
LONGEST = 40  # characters of a value
# Where and how a run was started, which is no difference between models.
_ASIDE = ("allow_changes", "ckpt_path", "config", NAME, "print_config", "runs_dir", "weights_only", "trainer.logger")
_PLACES = ("data_dir", "download", "num_workers", "device_resident")
_ORDER = ("model.class_path", "data.class_path", "model.", "data.", SEED, "init_from", "freeze_encoder", "trainer.")
_GREEK = {"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "eps": "ε", "lambda": "λ", "sigma": "σ", "tau": "τ"}
_SKIPPED = ("init_args", "dict_kwargs")


def run_labels(settings: Sequence[Mapping[str, str]], names: Sequence[str]) -> list[str]:
    """One label a run: its own name, or the settings that tell it from the others, as few as will do.

    Runs that no setting tells apart are told apart by `names`, as is a run alone.

    Args:
        settings: Flat settings of each run by dotted key, as `vaezoo.report.runs.flat` makes them.
        names: What each run is called without settings, its folder's name.
    """
    keys = _ranked(dict.fromkeys(key for run in settings for key in run))
    own, short = [_own_name(run) for run in settings], short_keys(keys)
    labels = []
    for i, name in enumerate(own):
        alike = [j for j in range(len(own)) if not name or own[j] == name]
        parts = [name] if name else []
        for key in keys:
            value, before = settings[i].get(key), len(alike)
            alike = [j for j in alike if settings[j].get(key) == value]
            if len(alike) < before and value is not None:
                parts.append(_text(short[key], key, value))
        if not parts or any(j != i and own[j] == name for j in alike):
            parts.append(names[i])
        labels.append(", ".join(parts))
    return labels


def settings_label(values: Mapping[str, str]) -> str:
    """Settings by name as one short text; those without a value are left out."""
    short = short_keys(list(values))
    return ", ".join(_text(short[key], key, value) for key, value in values.items() if value)


def short_keys(keys: Sequence[str]) -> dict[str, str]:
    """The last words of dotted keys, as many as tell them apart, with Greek letters where the papers have them."""
    words = {key: [word for word in key.split(".") if word not in _SKIPPED] for key in keys}
    short = {}
    for key, own in words.items():
        others = [other for name, other in words.items() if name != key]
        least = next((n for n in range(1, len(own)) if all(own[-n:] != other[-n:] for other in others)), len(own))
        shown = own[-2:] if own[-1] == "class_path" and least == 1 else own[-least:]
        short[key] = ".".join([*shown[:-1], _greek(shown[-1])])
    return short


def _ranked(keys: Mapping[str, None]) -> list[str]:
    """Keys that tell models apart, the telling ones first: classes, then plain arguments, then nested ones."""
    kept = [key for key in keys if not key.startswith(_ASIDE) and key.rpartition(".")[2] not in _PLACES]

    def rank(key: str) -> tuple[int, bool, int]:
        place = next((i for i, start in enumerate(_ORDER) if key.startswith(start)), len(_ORDER))
        return place, ".callbacks" in key, key.count(".")

    return sorted(kept, key=rank)


def _own_name(run: Mapping[str, str]) -> str:
    name = run.get(NAME, "null")
    return "" if name == "null" else on_one_line(name, LONGEST)


def _text(short: str, key: str, value: str) -> str:
    if key.endswith("class_path"):
        value = value.rpartition(".")[2].removesuffix("DataModule")
        return value if key in _ORDER else f"{short.removesuffix('.class_path')} = {value}"
    value = on_one_line("none" if value == "null" else _number(value), LONGEST)
    if key in ("config", "experiment"):
        return value
    return f"seed {value}" if key in ("seed", SEED) else f"{short} = {value}"


def _number(value: str) -> str:
    try:
        return f"{float(value):g}"
    except ValueError:
        return value


def _greek(word: str) -> str:
    first, underscore, rest = word.partition("_")
    return f"{_GREEK.get(first, first)}{underscore}{rest}"
