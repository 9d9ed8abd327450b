"""The framework: stages, pipelines, canonical events. It knows no dialect and no stage."""
