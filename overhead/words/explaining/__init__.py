"""What ``time`` and ``explain`` say, in words: a module for each thing that it is about."""
