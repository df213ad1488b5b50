"""Settings that measurements run with."""

from engram.config.settings import Settings


def load_settings() -> Settings:
    """Load the settings of the environment, with the encoder in single precision unless they name a precision.

    By default a service takes the precision that suits its processor. Figures would then depend on the machine.

    Raises:
        pydantic.ValidationError: a setting has an invalid value.
    """
    settings = Settings()
    if "embedding_precision" in settings.model_fields_set:
        return settings
    return settings.model_copy(update={"embedding_precision": "float32"})
