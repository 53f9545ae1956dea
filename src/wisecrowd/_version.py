"""The one place that holds the version: the build, the CLI and the manifests read it here."""

__version__ = "0.1.0"
