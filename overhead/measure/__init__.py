"""The measuring itself: clock, sampler, ladder, rounds, fit, gates, planner. Pure; runs on a fake clock; imports nothing else of ours."""
