"""Settings of the tests of a person's own calls, which are those of steps."""

from tests.explaining.conftest import usual_autograd_mode as usual_autograd_mode
