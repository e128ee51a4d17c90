"""Stands where the clean programs report their stages to TrainCheck: it hears and does nothing."""


def annotate_stage(*_: object, **__: object) -> None:
    pass
