# Each target sets itself up; ARGS are passed on (make test ARGS="-k fit"). Without make: python scripts/bootstrap.py TARGET
PYTHON ?= python3

.PHONY: report test lint bench site release clean
report test lint bench site release clean:
	@$(PYTHON) scripts/bootstrap.py $@ $(ARGS)
