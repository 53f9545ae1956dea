"""``python -m benchmarks.mutation``."""

from benchmarks.mutation.driver import main

if __name__ == "__main__":
    main()
