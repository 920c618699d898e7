"""`python -m local.spark_probe sc://HOST:PORT`: exit 0 when that Spark Connect server has run a query."""

from __future__ import annotations

import sys


def main() -> int:
    from pyspark.sql import SparkSession

    session = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
    try:
        return 0 if session.range(3).count() == 3 else 1
    finally:
        session.stop()


if __name__ == "__main__":
    sys.exit(main())
