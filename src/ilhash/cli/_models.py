"""From the options of a command to a model that is not trained yet."""

from typing import Any

import ilhash


def make_model(method: str, parameters: dict[str, Any]) -> Any:
    """Return an ILH, another method, or a mix of them, with these parameters."""
    parts = [part.strip().partition(":") for part in method.split("+")]
    if len(parts) == 1 and not parts[0][1]:
        return _one_model(method, parameters)
    if "n_bits" in parameters:
        raise ValueError(
            f"--bits must stand in --method for a mix, as in ilh:64+itq:64, got {parameters['n_bits']} too"
        )
    models, unused = [], list(parameters)
    for name, colon, bits in parts:
        known = _kind(name)().get_params()
        if colon and not bits.isdigit():
            raise ValueError(f"--method must be like ilh:64+itq:64, names and numbers of bits, got {method!r}")
        own = {parameter: value for parameter, value in parameters.items() if parameter in known}
        models.append(_one_model(name, own | ({"n_bits": int(bits)} if colon else {})))
        unused = [parameter for parameter in unused if parameter not in known]
    if unused:
        raise ValueError(f"parameters of {method} must be known to one of its methods, got {', '.join(unused)}")
    return ilhash.Mix(models)


def _kind(method: str) -> Any:
    return ilhash.ILH if method.upper() == "ILH" else ilhash.methods.get(method)


def _one_model(method: str, parameters: dict[str, Any]) -> Any:
    kind = _kind(method)
    known = kind().get_params()
    unknown = [name for name in parameters if name not in known]
    if unknown:
        raise ValueError(
            f"parameters of {kind.__name__} must be among {', '.join(sorted(known))}, got {', '.join(unknown)}"
        )
    return kind(**parameters)
