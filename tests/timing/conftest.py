"""Settings of the tests of a person's own calls, which are those of steps."""

# An error shows its sentence once the words are loaded, as they are in every command.
import overhead.words.reasons as reasons  # noqa: F401
from tests.explaining.conftest import usual_autograd_mode as usual_autograd_mode
