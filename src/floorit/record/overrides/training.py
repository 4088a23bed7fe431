"""Whether the program trains just now."""


def evaluates(session):
    """Whether the program is not training now, as far as it can be told."""
    models = session.trained_models()
    return not session.torch.is_grad_enabled() or (bool(models) and not any(model.training for model in models))
