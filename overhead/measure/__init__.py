"""The measuring itself: clock, planner, sampler, fit, gates. Pure: fake clock in tests, nothing else of ours."""
