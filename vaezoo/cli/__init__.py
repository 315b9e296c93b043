"""The command line: the only room that knows both models and datamodules."""
